// CHECK(condition) reports a failure and goes on; a test's main returns failures().

#pragma once

#include <atomic>
#include <cstdio>

inline std::atomic<int>& failureCount() {
    static std::atomic<int> count{0};
    return count;
}

inline int failures() { return failureCount() == 0 ? 0 : 1; }

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            ++failureCount();                                                    \
        }                                                                        \
    } while (false)

// Whether the expression throws an exception of this type.
#define THROWS(Type, ...)        \
    [&] {                        \
        try {                    \
            (void)(__VA_ARGS__); \
        } catch (const Type&) {  \
            return true;         \
        }                        \
        return false;            \
    }()
