// How many threads of this process can run at the same time.

#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace eagle {

namespace detail {

// What the scheduler lets this process run on.
inline int coresGiven() {
#if defined(__linux__)
    cpu_set_t given;
    if (sched_getaffinity(0, sizeof given, &given) == 0) return std::max(CPU_COUNT(&given), 1);
#endif
    return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// The cores' worth of time that a control group may use, rounded down, from the text of its cpu.max: "max
// 100000" or "150000 100000", microseconds in a period of so many; `most` if it sets no limit.
inline int coresAllowed(std::istream& limit, int most) {
    std::int64_t time = 0, period = 0;
    if (!(limit >> time >> period) || period <= 0) return most;
    return static_cast<int>(std::clamp<std::int64_t>(time / period, 1, most));
}

// The least limit of this process's control group (version 2) and those that it is in.
inline int coresAllowed(int most) {
#if defined(__linux__)
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (line.compare(0, 3, "0::") != 0) continue;
        std::string group = line.substr(3);
        while (!group.empty()) {
            group.erase(group.find_last_not_of('/') + 1);
            std::ifstream limit("/sys/fs/cgroup" + group + "/cpu.max");
            most = coresAllowed(limit, most);
            group.erase(group.empty() ? 0 : group.rfind('/') + 1);
        }
    }
#endif
    return most;
}

}  // namespace detail

// At least 1. Asks the system.
inline int usableCores() { return detail::coresAllowed(detail::coresGiven()); }

}  // namespace eagle
