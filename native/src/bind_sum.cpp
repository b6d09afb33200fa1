#include <cstring>
#include <string>

#include "bindings.hpp"
#include "buffer.hpp"
#include "eagle/sum.hpp"
#include "lock.hpp"

namespace nb = nanobind;

namespace eagle::python {
namespace {

constexpr std::int64_t kLong = 1 << 16;  // samples whose sum takes long enough to let other threads run

using Reduce64 = double (*)(const double*, std::int64_t, std::int64_t);
using Reduce32 = float (*)(const float*, std::int64_t, std::int64_t);

template <class T>
double reduceAs(const Py_buffer& view, T (*reduce)(const T*, std::int64_t, std::int64_t)) {
    const auto* samples = static_cast<const T*>(view.buf);
    const std::int64_t n = view.shape[0];
    const std::int64_t stride = view.strides[0] / static_cast<std::int64_t>(sizeof(T));
    if (n < kLong) return reduce(samples, n, stride);
    const Unlocked unlocked;
    return reduce(samples, n, stride);
}

double reduce(nb::handle array, Reduce64 reduce64, Reduce32 reduce32) {
    Buffer buffer;
    if (!PyObject_CheckBuffer(array.ptr())) {
        const std::string found = std::string("a ") + Py_TYPE(array.ptr())->tp_name + ": pass an array";
        throw nb::type_error(found.c_str());
    }
    if (!buffer.acquire(array.ptr(), PyBUF_STRIDES | PyBUF_FORMAT)) throw nb::python_error();
    const Py_buffer& view = buffer.view();
    if (view.ndim != 1) {
        const std::string found = "an array of " + std::to_string(view.ndim) + " axes: pass one with 1 axis";
        throw nb::value_error(found.c_str());
    }
    // Without a prefix a format is native and aligned.
    if (std::strcmp(view.format, "d") == 0) return reduceAs<double>(view, reduce64);
    if (std::strcmp(view.format, "f") == 0) return reduceAs<float>(view, reduce32);
    const std::string found =
        std::string("an array of format '") + view.format + "': pass aligned float64 or float32";
    throw nb::type_error(found.c_str());
}

}  // namespace
}  // namespace eagle::python

void bindSum(nb::module_& module) {
    using namespace eagle;
    module.attr("BLOCK") = kBlock;
    module.def(
        "ordered_sum",
        [](nb::handle array) { return python::reduce(array, orderedSum<double>, orderedSum<float>); },
        nb::arg("array"),
        "The canonical sum of a 1-D float64 or float32 array, in its precision; +0.0 for an empty one.");
    module.def(
        "tree_of_blocks",
        [](nb::handle array) { return python::reduce(array, treeOfBlocks<double>, treeOfBlocks<float>); },
        nb::arg("array"),
        "The tree over the sums of blocks, or of passes of 256 * 2**q samples, given in sample order.");
}
