// Dealing the blocks of a batch to a team of threads: the caller and its helpers.

#pragma once

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "cores.hpp"
#include "helpers.hpp"

namespace eagle::team {

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

inline constexpr int kMostThreads = 1024;

namespace detail {

// Whether this thread is at work for a team. Work inside work is done alone.
inline thread_local bool isInTeam = false;

class InTeam final {
public:
    InTeam() : before_(isInTeam) { isInTeam = true; }
    ~InTeam() { isInTeam = before_; }
    InTeam(const InTeam&) = delete;
    InTeam& operator=(const InTeam&) = delete;

private:
    bool before_;
};

// The number in OMP_NUM_THREADS, the first one if it is a list, or else the number of usable cores.
inline int usualSize() {
    const char* text = std::getenv("OMP_NUM_THREADS");
    const long asked = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    return asked >= 1 ? static_cast<int>(std::min<long>(asked, kMostThreads)) : usableCores();
}

inline std::atomic<int> chosenSize{0};  // 0: not yet

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

template <class Work>
class Dealing final : public Job {
public:
    Dealing(std::int64_t first, std::int64_t last, std::int64_t chunk, int threads, Work& work)
        : work_(work), chunk_(chunk), threads_(threads), shares_(static_cast<std::size_t>(threads)) {
        for (int t = 0; t < threads; ++t) {
            share(t).next = first + (last - first) * t / threads;
            share(t).last = first + (last - first) * (t + 1) / threads;
        }
        share(0).taken = true;
        std::fegetenv(&arithmetic_);
    }

    // The caller's part; false when cancelled.
    bool lead(Poll& poll) {
        const Stop stop{stop_};
        const InTeam inside;
        return takeChunks(0, [&] { return poll.cancelled(); });
    }

    bool help(int number, const Bell::Listener& bell) noexcept override {
        const InTeam inside;
        std::fesetenv(&arithmetic_);  // rounds, and treats denormals, as the caller does
        const Place place(*this, number);
        try {
            return takeChunks(place.thread, [&] { return bell.rang(); });
        } catch (...) {
            if (!failed_.test_and_set()) failure_ = std::current_exception();
            stop_ = true;
            return true;
        }
    }

    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    // A thread's own contiguous part of the blocks, which others help to finish.
    struct alignas(64) Share {
        std::atomic<std::int64_t> next{0};
        std::int64_t last = 0;
        std::atomic<bool> taken{false};
    };

    // The number of a thread, while a helper goes by it: its own one if it is free.
    struct Place {
        Place(Dealing& dealing, int number) : dealing(dealing), thread(number % dealing.threads_) {
            while (dealing.share(thread).taken.exchange(true)) thread = (thread + 1) % dealing.threads_;
        }
        ~Place() { dealing.share(thread).taken = false; }
        Dealing& dealing;
        int thread;
    };

    // Nothing is left when the caller is through, or is not to be done.
    struct Stop {
        ~Stop() { stop = true; }
        std::atomic<bool>& stop;
    };

    Share& share(int thread) { return shares_[static_cast<std::size_t>(thread % threads_)]; }

    // False when asked to leave, true when all is begun.
    template <class Leave>
    bool takeChunks(int thread, Leave&& leave) {
        for (int k = 0; k < threads_; ++k) {
            Share& share = this->share(thread + k);
            while (!stop_.load(std::memory_order_relaxed)) {
                if (share.next.load(std::memory_order_relaxed) >= share.last) break;
                const std::int64_t at = share.next.fetch_add(chunk_, std::memory_order_relaxed);
                if (at >= share.last) break;
                work_(thread, at, std::min(at + chunk_, share.last));
                if (leave()) return false;
            }
        }
        return true;
    }

    Work& work_;
    std::int64_t chunk_;
    int threads_;
    std::vector<Share> shares_;
    std::fenv_t arithmetic_;
    std::atomic<bool> stop_{false};
    std::atomic_flag failed_ = ATOMIC_FLAG_INIT;
    std::exception_ptr failure_;
};

}  // namespace detail

// The threads that work dealt now may use: what OMP_NUM_THREADS said when this was first asked, or else the
// number of usable cores, unless `setSize` was called. 1 inside of work.
inline int size() {
    if (detail::isInTeam) return 1;
    int chosen = detail::chosenSize;
    if (chosen > 0) return chosen;
    const int usual = detail::usualSize();
    return detail::chosenSize.compare_exchange_strong(chosen, usual) ? usual : chosen;
}

// std::invalid_argument for a number that is not between 1 and kMostThreads. More than there are cores is
// allowed, and of no use but to tests.
inline void setSize(int threads) {
    if (threads < 1 || threads > kMostThreads)
        throw std::invalid_argument("a team of " + std::to_string(threads) +
                                    " threads; give a number from 1 to " + std::to_string(kMostThreads));
    detail::chosenSize = threads;
}

// Calls work(thread, first, last) for chunks of [first, last), each block once, in no fixed order, with
// 0 <= thread < max(threads, 1), no two at a time with the same, and the calling thread as thread 0. Threads
// start on shares of their own, so that repeated passes meet the same data in the same cache. Returns false
// when the watch cancelled: chunks not started by then are dropped. The first exception that `work` throws
// is thrown again here. Work inside work is done by the calling thread alone.
template <class Work>
bool deal(std::int64_t first, std::int64_t last, std::int64_t chunk, int threads, Watch& watch,
          Work&& work) {
    detail::Poll poll(watch);
    threads = static_cast<int>(std::min<std::int64_t>(threads, (last - first + chunk - 1) / chunk));
    if (threads > 1 && !detail::isInTeam) {
        detail::Dealing dealing(first, last, chunk, threads, work);
        bool done;
        {
            const detail::Helpers::Offer offer(detail::helpers, dealing, threads - 1);
            done = dealing.lead(poll);
        }
        dealing.rethrow();
        return done;
    }
    for (std::int64_t at = first; at < last; at += chunk) {
        work(0, at, std::min(at + chunk, last));
        if (poll.cancelled()) return false;
    }
    return true;
}

}  // namespace eagle::team
