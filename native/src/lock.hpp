// Work without the interpreter's lock.

#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

namespace eagle::python {

class Unlocked final {
public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() { lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

    // Calls `work` with the lock.
    template <class Work>
    auto locked(Work&& work) {
        lock();
        const auto answer = work();
        state_ = PyEval_SaveThread();
        return answer;
    }

private:
    // An interpreter that has ended gives its lock to no thread. Some versions end a thread that asks for it
    // by unwinding its frames, which ours do not survive: so this one waits for the end of the process.
    void lock() noexcept {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

    PyThreadState* state_;
};

}  // namespace eagle::python
