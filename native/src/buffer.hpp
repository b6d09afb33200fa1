// Owned views of Python objects that have the buffer protocol.

#pragma once

#include <Python.h>

#include <utility>

namespace eagle::python {

class Buffer final {
public:
    Buffer() = default;
    ~Buffer() { release(); }
    Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
    Buffer& operator=(Buffer&& other) noexcept {
        if (this != &other) {
            release();
            view_ = std::exchange(other.view_, Py_buffer{});
        }
        return *this;
    }

    // False with a Python error set.
    bool acquire(PyObject* object, int flags) {
        release();
        return PyObject_GetBuffer(object, &view_, flags) == 0;
    }

    void release() {
        if (view_.obj != nullptr) PyBuffer_Release(&view_);
    }

    const Py_buffer& view() const { return view_; }

private:
    Py_buffer view_{};
};

}  // namespace eagle::python
