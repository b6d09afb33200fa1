// Dealing the blocks of a batch to an OpenMP team.
//
// Built without OpenMP everything runs on the calling thread. So do calls from inside a parallel region,
// and calls in a forked child whose parent had used a team here: the child has the team's memory but not
// its threads, and would wait for them for ever.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace eagle::team {

using Clock = std::chrono::steady_clock;

// What the caller of a long run wants to know. Both are called on the calling thread only.
class Watch {
public:
    virtual ~Watch() = default;
    virtual void begins() = 0;     // the work turned out to be long; may be called more than once
    virtual bool cancelled() = 0;  // asked about every 50 ms of long work: drop what has not started?
};

// For callers who want to know nothing.
class NoWatch final : public Watch {
public:
    void begins() override {}
    bool cancelled() override { return false; }
};

namespace detail {

inline std::atomic<bool> teamUsed{false};    // this process, or the one it was forked from, had a team
inline std::atomic<bool> teamIsLost{false};  // the team stayed behind in the parent process

inline void noteUse() {
#if defined(__unix__) || defined(__APPLE__)
    static const int registered = pthread_atfork(nullptr, nullptr, [] { teamIsLost = teamUsed.load(); });
    (void)registered;
#endif
    teamUsed = true;
}

// A thread's own contiguous part of the blocks, which others help to finish.
struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t last = 0;
};

// Asks the watch at most every 50 ms.
class Poll {
public:
    explicit Poll(Watch& watch) : watch_(watch), due_(Clock::now() + kPeriod) {}

    bool cancelled() {
        if (Clock::now() < due_) return false;
        const bool answer = watch_.cancelled();
        due_ = Clock::now() + kPeriod;
        return answer;
    }

private:
    static constexpr std::chrono::milliseconds kPeriod{50};
    Watch& watch_;
    Clock::time_point due_;
};

#ifdef _OPENMP
template <class Work>
bool dealToTeam(std::int64_t first, std::int64_t last, std::int64_t chunk, int threads, Poll& poll,
                Work& work) {
    noteUse();
    std::vector<Share> shares(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) {
        shares[t].next = first + (last - first) * t / threads;
        shares[t].last = first + (last - first) * (t + 1) / threads;
    }
    std::atomic<bool> stop{false};
    bool cancelled = false;  // written by the calling thread only
    std::exception_ptr failure;
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        try {
            for (int k = 0; k < threads; ++k) {
                Share& share = shares[(me + k) % threads];
                while (!stop.load(std::memory_order_relaxed)) {
                    const std::int64_t at = share.next.fetch_add(chunk, std::memory_order_relaxed);
                    if (at >= share.last) break;
                    work(me, at, std::min(at + chunk, share.last));
                    if (me == 0 && poll.cancelled()) stop = cancelled = true;
                }
            }
        } catch (...) {
            if (!failed.test_and_set()) failure = std::current_exception();
            stop = true;
        }
    }
    if (failure) std::rethrow_exception(failure);
    return !cancelled;
}
#endif

}  // namespace detail

// The threads a pass started now may use: OpenMP's current setting (OMP_NUM_THREADS).
inline int size() {
#ifdef _OPENMP
    if (detail::teamIsLost || omp_in_parallel()) return 1;
    return std::max(1, omp_get_max_threads());
#else
    return 1;
#endif
}

// Calls work(thread, first, last) for chunks of [first, last), each block once, in no fixed order, with
// 0 <= thread < max(threads, 1) and the calling thread as thread 0. Every thread starts on its own share,
// so that repeated passes meet the same data in the same cache. Returns false when the watch cancelled:
// chunks not started by then are dropped. The first exception that `work` throws is thrown again here.
template <class Work>
bool deal(std::int64_t first, std::int64_t last, std::int64_t chunk, [[maybe_unused]] int threads,
          Watch& watch, Work&& work) {
    detail::Poll poll(watch);
#ifdef _OPENMP
    if (threads > 1) return detail::dealToTeam(first, last, chunk, threads, poll, work);
#endif
    for (std::int64_t at = first; at < last; at += chunk) {
        work(0, at, std::min(at + chunk, last));
        if (poll.cancelled()) return false;
    }
    return true;
}

}  // namespace eagle::team
