// Dealing: every block once, on as many threads as asked for, and what may go wrong.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "eagle/team.hpp"

namespace team = eagle::team;

static void everyBlockOnce() {
    for (int threads : {0, 1, 2, 3, 7})
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

static void exceptionsComeBack() {
    for (int threads : {1, 3}) {
        team::NoWatch watch;
        const auto fail = [](int, std::int64_t at, std::int64_t) {
            if (at == 57) throw std::out_of_range("57");
        };
        CHECK(THROWS(std::out_of_range, team::deal(0, 100, 1, threads, watch, fail)));
    }
}

static void insideARegionThereIsNoTeam() {
    team::NoWatch watch;
    std::atomic<int> sizes{0};
    team::deal(0, 4, 1, 2, watch, [&](int, std::int64_t, std::int64_t) { sizes += team::size(); });
#ifdef _OPENMP
    CHECK(sizes == 4);
#endif
    CHECK(team::size() >= 1);
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

int main() {
    everyBlockOnce();
    exceptionsComeBack();
    insideARegionThereIsNoTeam();
    cancellingDropsWhatHasNotStarted();
    return failures();
}
