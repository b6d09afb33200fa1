// How a step finds its arguments: slots say where they lie, frames hold their addresses for one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "blocks.hpp"

namespace eagle {

// A compiled function over `count` consecutive samples, at most 256 unless it takes any number; the first of
// them is number `first` of the batch. Samples lie one after the other at each address.
using Entry = void (*)(const Address* addresses, std::int64_t count, std::int64_t first);

enum class Where {
    Plane,    // externals[index] + offset, and on by sample_stride for every sample
    Cell,     // externals[index] + offset, the same for all samples: parameters, tables
    Scratch,  // offset bytes into this thread's scratch memory
    Sum,      // this block's row of the partials of sum number `index`
};

// Where one argument of a step lies. Offsets and strides are in bytes.
struct Slot {
    Where where;
    int index = 0;
    std::int64_t offset = 0;
    std::int64_t sample_stride = 0;
    std::int64_t component_stride = 0;
};

// One thread's addresses, by slot, and its scratch memory. They share an allocation that starts and ends on
// a cache line: neighbouring threads write their addresses for every block.
class Frame final {
public:
    Frame(const std::vector<Slot>& slots, std::int64_t scratch) {
        const std::size_t table = (slots.size() * sizeof(Address) + kLine - 1) / kLine * kLine;
        const std::size_t bytes = table + static_cast<std::size_t>(scratch) + kLine;
        memory_.reset(static_cast<char*>(::operator new(bytes, std::align_val_t(kLine))));
        addresses = reinterpret_cast<Address*>(memory_.get());
        for (std::size_t k = 0; k < slots.size(); ++k) {
            char* base = slots[k].where == Where::Scratch ? memory_.get() + table + slots[k].offset : nullptr;
            new (addresses + k) Address{base, slots[k].component_stride};
        }
    }

    Address* addresses;

private:
    static constexpr std::size_t kLine = 64;
    struct Free {
        void operator()(char* memory) const { ::operator delete(memory, std::align_val_t(kLine)); }
    };
    std::unique_ptr<char, Free> memory_;
};

}  // namespace eagle
