#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "buffer.hpp"
#include "eagle/executor.hpp"
#include "lock.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace eagle::python {
namespace {

// Lets other Python threads run while the work is long, and looks for Ctrl-C.
class GilWatch final : public team::Watch {
public:
    void begins() override {
        if (!unlocked_) unlocked_.emplace();
    }
    bool cancelled() override {
        begins();
        return unlocked_->locked([] { return PyErr_CheckSignals() != 0; });
    }

private:
    std::optional<Unlocked> unlocked_;
};

// An executor and the Python objects that its externals lie in.
class Runner final {
public:
    Runner(std::int64_t samples, int externals, std::int64_t part_blocks) : executor(samples, part_blocks) {
        for (int k = 0; k < externals; ++k) addExternal();
    }

    // What changes the executor. RuntimeError while it runs in another thread.
    template <class Change>
    auto change(Change&& change) {
        const Executor::Turn turn(executor);
        if (!turn) throw std::runtime_error("this executor is running: change it when the run is done");
        return change(executor);
    }

    int addExternal() {
        return change([&](Executor& e) {
            held_.emplace_back();
            return e.addExternal();
        });
    }

    void setExternal(int index, nb::handle object, bool writable) {
        change([&](Executor& e) {
            e.setExternal(index, nullptr);
            Buffer& buffer = held_[static_cast<std::size_t>(index)];
            e.setExternal(index, addressOf(index, object, writable, buffer));
        });
    }

    bool run() {
        const Executor::Turn turn(executor);
        return turn && execute();
    }

    bool runWith(int first, const nb::tuple& objects, int writable) {
        const Executor::Turn turn(executor);
        if (!turn) return false;
        const int count = static_cast<int>(objects.size());
        const Borrowed borrowed(*this, first, count);
        for (int k = 0; k < count; ++k) {
            const int index = first + k;
            const nb::handle object = PyTuple_GET_ITEM(objects.ptr(), k);
            void* address = addressOf(index, object, k >= count - writable, borrowed.buffer(k));
            executor.setExternal(index, address);
        }
        return execute();
    }

    Executor executor;

private:
    // The externals of one `runWith`: unset again at its end, as nobody keeps their arrays alive.
    class Borrowed final {
    public:
        Borrowed(Runner& runner, int first, int count) : runner_(runner), first_(first), count_(count) {
            if (first < 0 || count > runner.executor.externals() - first)
                throw std::invalid_argument("run_with sets externals " + std::to_string(first) + " to " +
                                            std::to_string(first + count - 1) + " of " +
                                            std::to_string(runner.executor.externals()));
        }
        ~Borrowed() {
            for (int k = 0; k < count_; ++k) {
                runner_.executor.setExternal(first_ + k, nullptr);
                buffer(k).release();
            }
        }
        Borrowed(const Borrowed&) = delete;
        Borrowed& operator=(const Borrowed&) = delete;

        Buffer& buffer(int k) const { return runner_.held_[static_cast<std::size_t>(first_ + k)]; }

    private:
        Runner& runner_;
        int first_;
        int count_;
    };

    static void* addressOf(int index, nb::handle object, bool writable, Buffer& buffer) {
        if (PyLong_Check(object.ptr())) {
            buffer.release();
            void* address = PyLong_AsVoidPtr(object.ptr());
            if (address == nullptr && PyErr_Occurred()) throw nb::python_error();
            return address;
        }
        if (!buffer.acquire(object.ptr(), writable ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES))
            refuse(index, object, writable);
        return buffer.view().buf;
    }

    [[noreturn]] static void refuse(int index, nb::handle object, bool writable) {
        nb::python_error cause;
        if (!PyObject_CheckBuffer(object.ptr()))
            nb::raise_from(cause, PyExc_TypeError, "external %d is a %s: pass an array or an address (int)",
                           index, Py_TYPE(object.ptr())->tp_name);
        nb::raise_from(cause, PyExc_ValueError,
                       "external %d cannot be %s: the object given does not allow it", index,
                       writable ? "written" : "read");
    }

    bool execute() {
        Outcome outcome;
        {
            GilWatch watch;
            outcome = executor.execute(watch);
        }
        if (outcome == Outcome::Cancelled) throw nb::python_error();
        return true;
    }

    std::vector<Buffer> held_;
};

}  // namespace
}  // namespace eagle::python

void bindExecutor(nb::module_& module) {
    using namespace eagle;
    using python::Runner;

    nb::class_<Slot>(module, "Slot", "Where one argument of a step lies. Offsets and strides are in bytes.")
        .def_static(
            "plane",
            [](int external, std::int64_t offset, std::int64_t sample_stride, std::int64_t component_stride) {
                return Slot{Where::Plane, external, offset, sample_stride, component_stride};
            },
            "external"_a, "offset"_a = 0, nb::kw_only(), "sample_stride"_a, "component_stride"_a = 0,
            "A plane: sample i of component c at offset + i * sample_stride + c * component_stride.")
        .def_static(
            "cell",
            [](int external, std::int64_t offset, std::int64_t component_stride) {
                return Slot{Where::Cell, external, offset, 0, component_stride};
            },
            "external"_a, "offset"_a = 0, nb::kw_only(), "component_stride"_a = 0,
            "The same values for all samples: a parameter or a table.")
        .def_static(
            "scratch",
            [](std::int64_t offset, std::int64_t sample_stride, std::int64_t component_stride) {
                return Slot{Where::Scratch, 0, offset, sample_stride, component_stride};
            },
            "offset"_a, nb::kw_only(), "sample_stride"_a, "component_stride"_a = 0,
            "Memory of one thread for one block; `offset` starts at what `Executor.scratch` returned.")
        .def_static(
            "sum", [](int sum) { return Slot{Where::Sum, sum, 0, 0, 0}; }, "sum"_a,
            "The block's row of the partials of a sum; for one call.");

    nb::class_<Runner>(
        module, "Executor",
        "Steps over the samples of a batch, run block by block by a team of threads.\n\n"
        "Building a step raises ValueError for what cannot be run, and RuntimeError during a run.")
        .def(nb::init<std::int64_t, int, std::int64_t>(), "samples"_a, "externals"_a = 0, nb::kw_only(),
             "part_blocks"_a = 0,
             "`part_blocks`, a power of two, is the number of blocks in a part of the table sums; 0 for one\n"
             "that makes at most 64 parts. Passes of a batch need the same number for the same bits.")
        .def_prop_ro("samples", [](const Runner& r) { return r.executor.samples(); })
        .def_prop_ro("blocks", [](const Runner& r) { return r.executor.blocks(); })
        .def_prop_ro("part_blocks", [](const Runner& r) { return r.executor.partBlocks(); })
        .def_prop_ro("externals", [](const Runner& r) { return r.executor.externals(); })
        .def("add_external", &Runner::addExternal,
             "The number of one more external, for slots; bind it with `set_external`.")
        .def(
            "scratch",
            [](Runner& r, std::int64_t bytes) {
                return r.change([&](Executor& e) { return e.scratch(bytes); });
            },
            "bytes"_a, "Reserve memory, of every thread, for one block; the offset of it, a multiple of 64.")
        .def(
            "sum",
            [](Runner& r, int external, std::int64_t offset, int components, bool is_double) {
                return r.change([&](Executor& e) { return e.sum(external, offset, components, is_double); });
            },
            "external"_a, "offset"_a, "components"_a, "is_double"_a,
            "Declare a canonical sum over the samples: its number, for `Slot.sum` in one call, which stores\n"
            "there the block's sum of each component. The totals are written one after the other at\n"
            "`offset`, when all blocks are through the steps up to the next barrier.")
        .def(
            "table_sum",
            [](Runner& r, int external, std::int64_t offset, int components, bool is_double) {
                return r.change(
                    [&](Executor& e) { return e.tableSum(external, offset, components, is_double); });
            },
            "external"_a, "offset"_a, "components"_a, "is_double"_a,
            "Declare a sum over the samples whose components are the elements of a table: its number, for\n"
            "`Slot.sum` in one call, which adds there in sample order. It finds a contiguous table of the\n"
            "block's part, `part_blocks` consecutive blocks run in order, that started as zeros; the totals\n"
            "are trees over the parts.")
        .def(
            "call",
            [](Runner& r, std::uintptr_t entry, const std::vector<Slot>& slots, bool any_count) {
                r.change([&](Executor& e) { e.call(reinterpret_cast<Entry>(entry), slots, any_count); });
            },
            "entry"_a, "slots"_a, nb::kw_only(), "any_count"_a = false,
            "Call the compiled function at address `entry` for every block:\n"
            "void(const Address*, int64_t count, int64_t first). It must stay loaded while the executor is\n"
            "used, and must not raise. `count` is at most 256 unless `any_count` allows more at a time,\n"
            "which saves calls where neither scratch nor sums are used.")
        .def(
            "copy",
            [](Runner& r, const Slot& to, const Slot& from, int components, int itemsize) {
                r.change([&](Executor& e) { e.copy(to, from, components, itemsize); });
            },
            "to"_a, "source"_a, "components"_a, "itemsize"_a)
        .def(
            "join",
            [](Runner& r, const Slot& to, const std::vector<Slot>& from, int components, bool is_double) {
                r.change([&](Executor& e) { e.join(to, from, components, is_double); });
            },
            "to"_a, "sources"_a, "components"_a, "is_double"_a,
            "to = ((sources[0] + sources[1]) + sources[2]) ...; `to` may be one of the sources.")
        .def(
            "zero",
            [](Runner& r, const Slot& to, int components, int itemsize) {
                r.change([&](Executor& e) { e.zero(to, components, itemsize); });
            },
            "to"_a, "components"_a, "itemsize"_a)
        .def(
            "passes", [](Runner& r, std::int64_t blocks) { r.change([&](Executor& e) { e.passes(blocks); }); },
            "blocks"_a, "Let `blocks` blocks at a time finish before the next ones begin; 0: all at once.")
        .def(
            "barrier", [](Runner& r) { r.change([](Executor& e) { e.barrier(); }); },
            "Let all blocks finish the steps so far before the next step starts.")
        .def(
            "set_external", &Runner::setExternal, "index"_a, "object"_a, "writable"_a,
            "Bind an external to an array (anything with the buffer protocol, kept alive) or to an address.\n\n"
            "Only the address of its first element is used: shapes and strides are the slots' affair.\n"
            "Raises TypeError for an object without memory, ValueError for a read-only one to be written.")
        .def(
            "run", &Runner::run,
            "Run the steps once. False, having done nothing, if this executor is running already.\n\n"
            "Ctrl-C raises KeyboardInterrupt within the time of a few blocks. Those not started are dropped:\n"
            "planes are written in part and sums not at all. RuntimeError if an external is not set.")
        .def(
            "run_with", &Runner::runWith, "first"_a, "objects"_a, "writable"_a = 0,
            "Bind the externals from `first` on to `objects`, the last `writable` of which are written, for\n"
            "this run only; then as `run`.");
}
