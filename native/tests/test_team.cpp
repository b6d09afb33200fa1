// Dealing: every block once, with the help of whoever has time, and what may go wrong.

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "eagle/team.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace team = eagle::team;

static constexpr int kMany = 8;  // no test asks for more: when so many are at work, no helper is left

// Calls work(thread) in so many threads, when all of them have come.
template <class Work>
static void together(int threads, Work&& work) {
    team::NoWatch watch;
    std::atomic<int> arrived{0};
    team::deal(0, threads, 1, threads, watch, [&](int thread, std::int64_t, std::int64_t) {
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
        work(thread);
    });
}

static void everyBlockOnce() {
    for (int threads : {0, 1, 2, 3, kMany})
        for (std::int64_t chunk : {1, 2, 5, 1000})
            for (std::int64_t first : {0, 3})
                for (std::int64_t last : {3, 4, 100}) {
                    std::vector<std::atomic<int>> visits(100);
                    team::NoWatch watch;
                    const bool done = team::deal(first, last, chunk, threads, watch,
                                                 [&](int thread, std::int64_t at, std::int64_t end) {
                                                     CHECK(thread == 0 || (thread > 0 && thread < threads));
                                                     for (; at < end; ++at)
                                                         ++visits[static_cast<std::size_t>(at)];
                                                 });
                    CHECK(done);
                    for (std::int64_t block = 0; block < 100; ++block)
                        CHECK(visits[static_cast<std::size_t>(block)] == (block >= first && block < last));
                }
}

// The counts are not atomic: no two threads may go by the same number at a time.
static void quickDealsInARow(int deals, int threads) {
    struct alignas(64) Count {
        std::int64_t blocks = 0;
    };
    std::vector<Count> counts(static_cast<std::size_t>(threads));
    std::int64_t expected = 0, found = 0;
    for (int k = 0; k < deals; ++k) {
        team::NoWatch watch;
        const std::int64_t blocks = threads + k % 50;
        team::deal(0, blocks, 1 + k % 3, threads, watch, [&](int thread, std::int64_t at, std::int64_t end) {
            counts[static_cast<std::size_t>(thread)].blocks += end - at;
        });
        expected += blocks;
    }
    for (const Count& count : counts) found += count.blocks;
    CHECK(found == expected);
}

static void manyCallersAtATime() {
    std::vector<std::thread> callers;
    for (int k = 0; k < 12; ++k) callers.emplace_back(quickDealsInARow, 200, 2 + k % (kMany - 1));
    for (std::thread& caller : callers) caller.join();
}

static void exceptionsComeBack() {
    for (int threads : {1, 3}) {
        team::NoWatch watch;
        const auto fail = [](int, std::int64_t at, std::int64_t) {
            if (at == 57) throw std::out_of_range("57");
        };
        CHECK(THROWS(std::out_of_range, team::deal(0, 100, 1, threads, watch, fail)));
    }
    for (int failing : {0, 1}) {
        const auto fail = [&](int thread) {
            if (thread == failing) throw std::out_of_range("this thread");
        };
        CHECK(THROWS(std::out_of_range, together(2, fail)));
    }
    CHECK(THROWS(std::out_of_range, together(3, [](int) { throw std::out_of_range("all threads"); })));
}

static void insideATeamThereIsNone() {
    together(2, [](int) {
        CHECK(team::size() == 1);
        team::NoWatch watch;
        std::set<std::thread::id> threads;
        team::deal(0, 100, 1, 2, watch,
                   [&](int, std::int64_t, std::int64_t) { threads.insert(std::this_thread::get_id()); });
        CHECK(threads == std::set<std::thread::id>{std::this_thread::get_id()});
    });
    CHECK(team::size() >= 1);
}

static void sizesThatMakeNoSenseAreRefused() {
    team::setSize(3);
    for (int wrong : {-1, 0, team::kMostThreads + 1})
        CHECK(THROWS(std::invalid_argument, team::setSize(wrong)));
    CHECK(team::size() == 3);
}

class Impatient final : public team::Watch {
public:
    void begins() override {}
    bool cancelled() override { return ++asked == 2; }
    int asked = 0;
};

static void cancellingDropsWhatHasNotStarted() {
    for (int threads : {1, 2}) {
        Impatient watch;
        std::atomic<int> visits{0};
        const auto slow = [&](int, std::int64_t, std::int64_t) {
            ++visits;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        };
        CHECK(!team::deal(0, 1'000'000, 1, threads, watch, slow));
        CHECK(watch.asked == 2);
        CHECK(visits > 1 && visits < 1'000'000);
    }
}

// Deals end while no helper can come: the caller does it all.
static void nobodyIsWaitedForWhoHasNotBegun() {
    std::atomic<int> held{0};
    std::atomic<bool> go_on{false};
    std::thread other([&] {
        together(kMany, [&](int) {
            ++held;
            while (!go_on) std::this_thread::yield();
        });
    });
    while (held < kMany) std::this_thread::yield();
    quickDealsInARow(100, kMany);
    go_on = true;
    other.join();
}

// Helpers leave long work when somebody else needs one, and come back to it.
static void longWorkDoesNotKeepTheHelpers() {
    struct AllCameBack final : team::Watch {
        void begins() override {}
        bool cancelled() override { return after == (1 << kMany) - 1; }
        std::atomic<int> before{0}, after{0};
        std::atomic<bool> helped{false};
    } watch;
    std::thread other([&] {
        const auto notes = [&](int thread, std::int64_t, std::int64_t) {
            (watch.helped ? watch.after : watch.before) |= 1 << thread;
            std::this_thread::yield();
        };
        CHECK(!team::deal(0, std::int64_t{1} << 40, 1, kMany, watch, notes));
    });
    while (watch.before != (1 << kMany) - 1) std::this_thread::yield();
    together(2, [](int) {});
    watch.helped = true;
    other.join();
}

static void helpersRoundAsTheCallerDoes() {
    for (int direction : {FE_UPWARD, FE_TONEAREST}) {
        std::fesetround(direction);
        together(2, [&](int) { CHECK(std::fegetround() == direction); });
        CHECK(std::fegetround() == direction);
    }
}

static void coresAreCounted() {
    const auto allowed = [](const char* text) {
        std::istringstream limit(text);
        return eagle::detail::coresAllowed(limit, 8);
    };
    CHECK(allowed("max 100000\n") == 8);
    CHECK(allowed("") == 8);
    CHECK(allowed("400000 100000\n") == 4);
    CHECK(allowed("250000 100000\n") == 2);
    CHECK(allowed("10000 100000\n") == 1);
    CHECK(allowed("6400000 100000\n") == 8);
    CHECK(eagle::usableCores() >= 1);
}

static void helpersGetNoSignals() {
#if defined(__unix__) || defined(__APPLE__)
    together(2, [](int thread) {
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        CHECK(sigismember(&blocked, SIGINT) == (thread > 0));
    });
#endif
}

// The sanitizers' own locks do not survive a fork beside other threads.
#if defined(_WIN32) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static void forking() {}
#else
static void aForkedChildHasItsOwnHelpers() {
    const pid_t child = fork();
    if (child == 0) {
        together(2, [](int) {});
        quickDealsInARow(100, 3);
        _exit(failures());
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forksWhileOthersDeal() {
    std::atomic<bool> go_on{true};
    std::thread other([&] {
        while (go_on) quickDealsInARow(10, kMany);
    });
    for (int k = 0; k < 20; ++k) aForkedChildHasItsOwnHelpers();
    go_on = false;
    other.join();
}

static void forking() {
    aForkedChildHasItsOwnHelpers();
    together(2, [](int) {});
    aForkedChildHasItsOwnHelpers();
    forksWhileOthersDeal();
}
#endif

int main() {
    forking();  // first, with no helpers yet
    everyBlockOnce();
    for (int threads : {1, 2, 3, kMany}) quickDealsInARow(1000, threads);
    manyCallersAtATime();
    exceptionsComeBack();
    insideATeamThereIsNone();
    sizesThatMakeNoSenseAreRefused();
    cancellingDropsWhatHasNotStarted();
    nobodyIsWaitedForWhoHasNotBegun();
    longWorkDoesNotKeepTheHelpers();
    helpersRoundAsTheCallerDoes();
    helpersGetNoSignals();
    coresAreCounted();
    return failures();
}
