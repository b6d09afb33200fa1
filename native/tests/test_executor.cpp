// An executor from C++: values, sums and the frames of many threads.

#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "eagle/executor.hpp"

using namespace eagle;

static const double* reals(const Address& address) { return reinterpret_cast<const double*>(address.base); }
static double* reals(Address& address) { return reinterpret_cast<double*>(address.base); }

// y = x * x, and the sum of it.
static void square(const Address* addresses, std::int64_t count, std::int64_t) {
    Address y = addresses[1];
    for (std::int64_t i = 0; i < count; ++i) reals(y)[i] = reals(addresses[0])[i] * reals(addresses[0])[i];
    *reinterpret_cast<double*>(addresses[2].base) = blockSum(reals(addresses[1]), count);
}

static Slot plane(int external) { return {Where::Plane, external, 0, 8, 0}; }

static void squaresAndTheirSum(std::int64_t n, std::int64_t pass_blocks) {
    std::vector<double> x(static_cast<std::size_t>(n)), y(x.size()), expected;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0 / static_cast<double>(i + 1);
    for (double value : x) expected.push_back(value * value);
    double total = -1;
    Executor executor(n);
    executor.passes(pass_blocks);
    for (void* address :
         {static_cast<void*>(x.data()), static_cast<void*>(y.data()), static_cast<void*>(&total)})
        executor.setExternal(executor.addExternal(), address);
    const Slot packed{Where::Scratch, 0, executor.scratch(8 * kBlock), 8, 0};
    executor.copy(packed, plane(0), 1, 8);
    executor.call(square, {packed, plane(1), {Where::Sum, executor.sum(2, 0, 1, true)}});
    team::NoWatch watch;
    for (int run = 0; run < 3; ++run) CHECK(executor.run(watch) == Outcome::Done);
    CHECK(y == expected);
    CHECK(total == orderedSum(expected.data(), n));
}

static void oneTurnAtATime() {
    Executor executor(5);
    team::NoWatch watch;
    {
        const Executor::Turn turn(executor);
        CHECK(turn);
        CHECK(executor.run(watch) == Outcome::Busy);
        CHECK(executor.execute(watch) == Outcome::Done);
    }
    CHECK(executor.run(watch) == Outcome::Done);
}

static void fail(const Address*, std::int64_t, std::int64_t) { throw std::bad_alloc(); }

static void anExceptionEndsTheRunAndTheTurn() {
    Executor executor(100'000);
    executor.call(fail, {});
    team::NoWatch watch;
    CHECK(THROWS(std::bad_alloc, executor.run(watch)));
    CHECK(THROWS(std::bad_alloc, executor.run(watch)));
}

int main() {
    for (int threads : {1, 2, 3, 8}) {
        team::setSize(threads);
        for (std::int64_t n : {0, 1, 256, 257, 1'000'000})
            for (std::int64_t pass_blocks : {0, 1, 100}) squaresAndTheirSum(n, pass_blocks);
    }
    oneTurnAtATime();
    anExceptionEndsTheRunAndTheTurn();
    return failures();
}
