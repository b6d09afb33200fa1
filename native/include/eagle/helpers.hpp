// Threads that help others with their work.
//
// A caller offers a job, does it itself as if it were alone, and in the end waits only for helpers that are
// in the middle of a piece of it. One that comes late, because it slept or because its core was busy with
// something else, finds the offer closed. Helpers are started when first needed, never end, and sleep when
// there is nothing to do.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace eagle::team {

using Clock = std::chrono::steady_clock;

namespace detail {

// Rung for every new offer. A helper listens from before it looks for one, so that it misses none.
class Bell final {
public:
    class Listener final {
    public:
        explicit Listener(const Bell& bell) : bell_(bell), heard_(bell.rings_) {}
        bool rang() const { return bell_.rings_ != heard_; }

    private:
        const Bell& bell_;
        std::uint64_t heard_;
    };

    void ring() { ++rings_; }

private:
    alignas(64) std::atomic<std::uint64_t> rings_{0};
};

// Work that a caller does and others may help with.
class Job {
public:
    // Called in helper number 1, 2, ...: do a part. True when there is no more to begin; false, to be called
    // again perhaps, when the bell rang: somebody else needs help too.
    virtual bool help(int number, const Bell::Listener& bell) noexcept = 0;

protected:
    ~Job() = default;
};

// A number for the core that this thread runs on; -1 where that is not known.
inline int currentCore() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

inline void pauseBriefly() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && !defined(_MSC_VER)
    __asm__ volatile("isb");
#endif
}

// Whether it came true in about the time that a sleeping thread takes to wake up. Others get the core when
// `gives_way` says so.
template <class Condition, class GivesWay>
bool comesTrueSoon(Condition&& condition, GivesWay&& gives_way) {
    const auto end = Clock::now() + std::chrono::microseconds(50);
    do {
        for (int k = 0; k < 32; ++k) {
            if (condition()) return true;
            pauseBriefly();
        }
        if (gives_way()) std::this_thread::yield();
    } while (Clock::now() < end);
    return condition();
}

// Signals are for the threads of the program: those started meanwhile do not get any.
class SignalsBlocked final {
public:
#if defined(__unix__) || defined(__APPLE__)
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
#else
    SignalsBlocked() {}
#endif
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

#if defined(__unix__) || defined(__APPLE__)
private:
    sigset_t before_;
#endif
};

inline void nameThisThread([[maybe_unused]] const char* name) {
#if defined(__linux__)
    pthread_setname_np(pthread_self(), name);
#elif defined(__APPLE__)
    pthread_setname_np(name);
#endif
}

class Helpers final {
    // Where a job is offered. Only who made the offer, and who has a seat, may look at the job.
    struct alignas(64) Desk {
        std::atomic<std::uint32_t> state{0};  // flags, and the numbers of helpers and of free seats
        Job* job = nullptr;
    };
    static constexpr std::uint32_t kTaken = 1U << 31;
    static constexpr std::uint32_t kOpen = 1U << 30;
    static constexpr std::uint32_t kAwaited = 1U << 29;  // the caller sleeps until there are no helpers
    static constexpr std::uint32_t kHelper = 1U << 14;
    static constexpr std::uint32_t kSeat = 1;
    static constexpr std::uint32_t kHelpers = kAwaited - kHelper;
    static constexpr std::uint32_t kSeats = kHelper - kSeat;

public:
    // A job's offer to at most `seats` helpers at a time, until it ends: it waits for those who are at work.
    // There may be none, for lack of threads or because too many others offer theirs.
    class Offer final {
    public:
        Offer(Helpers& helpers, Job& job, int seats) : helpers_(helpers), desk_(helpers.takeDesk()) {
            if (desk_ == nullptr) return;
            helpers.start(seats);
            desk_->job = &job;
            desk_->state.store(kTaken | kOpen | kSeat * static_cast<std::uint32_t>(seats),
                               std::memory_order_release);
            helpers.callers_core_.store(currentCore(), std::memory_order_relaxed);
            helpers.bell_.ring();
            helpers.wake(seats);
        }
        ~Offer() {
            if (desk_ == nullptr) return;
            desk_->state &= ~kOpen;
            if (!comesTrueSoon([this] { return isDone(); }, [] { return false; })) sleep();
            desk_->state.store(0, std::memory_order_release);
        }
        Offer(const Offer&) = delete;
        Offer& operator=(const Offer&) = delete;

    private:
        bool isDone() const { return (desk_->state & kHelpers) == 0; }

        void sleep() {
            desk_->state |= kAwaited;
            std::unique_lock<std::mutex> lock(helpers_.mutex_);
            helpers_.left_.wait(lock, [this] { return isDone(); });
        }

        Helpers& helpers_;
        Desk* desk_;
    };

private:
    Desk* takeDesk() {
        for (Desk& desk : desks_) {
            std::uint32_t state = 0;
            if (desk.state.compare_exchange_strong(state, kTaken, std::memory_order_acquire)) return &desk;
        }
        return nullptr;
    }

    // Makes it `count` helpers, or as many as there can be.
    void start(int count) noexcept {
        if (started_ >= count || !can_start_) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        const SignalsBlocked blocked;
        try {
            for (; started_ < count; ++started_)
                std::thread(&Helpers::serve, this, started_ + 1).detach();
        } catch (const std::exception&) {
            can_start_ = false;
        }
    }

    // Whether this thread keeps a caller from its core.
    bool isInTheWay() const {
        const int core = currentCore();
        return core >= 0 && core == callers_core_.load(std::memory_order_relaxed);
    }

    // Wakes two sleepers, who wake others as long as there are seats.
    void wake(int seats) {
        const int sleepers = std::min({2, seats, asleep_.load()});
        if (sleepers <= 0) return;
        { const std::lock_guard<std::mutex> lock(mutex_); }  // who was about to sleep does, or heard the bell
        for (int k = 0; k < sleepers; ++k) rang_.notify_one();
    }

    [[noreturn]] void serve(int number) noexcept {
        nameThisThread("eagle");
        for (Desk* desk = nullptr;;) {
            const Bell::Listener bell(bell_);
            desk = sitDown(desk);
            if (desk != nullptr) {
                wake(static_cast<int>(desk->state & kSeats));
                if (desk->job->help(number, bell)) desk->state &= ~kOpen;
                standUp(*desk);
            } else if (!comesTrueSoon([&] { return bell.rang(); }, [this] { return isInTheWay(); })) {
                sleep(bell);
            }
        }
    }

    // A seat where the fewest help, rather not where this helper was before; null if there is none.
    Desk* sitDown(const Desk* before) {
        for (;;) {
            Desk* best = nullptr;
            std::uint32_t found = 0, rank = UINT32_MAX;
            for (Desk& desk : desks_) {
                const std::uint32_t state = desk.state;
                const std::uint32_t others = (state & kHelpers) + (&desk == before ? 1 : 0);
                if ((state & kOpen) == 0 || (state & kSeats) == 0 || others >= rank) continue;
                best = &desk;
                found = state;
                rank = others;
            }
            if (best == nullptr) return nullptr;
            if (best->state.compare_exchange_weak(found, found + kHelper - kSeat)) return best;
        }
    }

    void standUp(Desk& desk) {
        const std::uint32_t before = desk.state.fetch_sub(kHelper - kSeat);  // now it may be another job's
        if ((before & kAwaited) == 0) return;
        { const std::lock_guard<std::mutex> lock(mutex_); }  // the caller sleeps, or has seen it
        left_.notify_all();
    }

    void sleep(const Bell::Listener& bell) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++asleep_;
        rang_.wait(lock, [&] { return bell.rang(); });
        --asleep_;
    }

    Desk desks_[8];
    Bell bell_;
    std::atomic<int> asleep_{0};
    std::atomic<int> callers_core_{-1};  // of who made the latest offer
    std::atomic<int> started_{0};
    std::atomic<bool> can_start_{true};
    std::mutex mutex_;  // of the sleepers, and of who starts helpers
    std::condition_variable rang_;
    std::condition_variable left_;
};

// Never destroyed: helpers sleep in it until the process ends. Made when the program or the library is
// loaded, so that no fork comes in between.
inline Helpers& helpers = *new Helpers;

// A forked child does not have its parent's helpers, and begins anew.
inline const int kForks =
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { new (&helpers) Helpers; });
#else
    0;
#endif

}  // namespace detail
}  // namespace eagle::team
