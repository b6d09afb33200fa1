// A list of steps over the samples of a batch, done block by block.
//
// Neighbouring steps run on one block before the next block is touched, so what they pass to each other
// stays in cache; a barrier makes all blocks finish what stands before it. Blocks are independent: bits
// never depend on the number of threads, nor on who ran which block.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "blocks.hpp"
#include "sum.hpp"
#include "team.hpp"

namespace eagle {

// A compiled function over the samples of one block, `count` <= 256 of them, `itemsize` bytes apart.
using Entry = void (*)(const Address* addresses, std::int64_t count);

enum class Where {
    Plane,    // externals[index] + offset, and on by sample_stride for every sample
    Cell,     // externals[index] + offset, the same for all samples: parameters, tables
    Scratch,  // offset bytes into this thread's scratch memory
    Sum,      // this block's partial of sum number `index`; the call writes one value per component
};

// Where one argument of a step lies. Offsets and strides are in bytes.
struct Slot {
    Where where;
    int index = 0;
    std::int64_t offset = 0;
    std::int64_t sample_stride = 0;
    std::int64_t component_stride = 0;
};

enum class Outcome {
    Done,
    Busy,       // this executor is running already; nothing was done
    Cancelled,  // some blocks were not run and no sum of the unfinished segment was written
};

class Executor final {
public:
    Executor(std::int64_t samples, int externals) : samples_(samples), externals_(checked(samples, externals)) {}

    std::int64_t samples() const { return samples_; }
    std::int64_t blocks() const { return blocksOf(samples_); }
    int externals() const { return static_cast<int>(externals_.size()); }

    // ---- building; std::invalid_argument for what cannot be run -------------------------------------

    // Reserves scratch memory, of every thread, for one block; returns its offset, a multiple of 64.
    std::int64_t scratch(std::int64_t bytes) {
        require(bytes >= 0, "scratch: ", bytes, " bytes; give a size >= 0");
        frames_.clear();
        const std::int64_t offset = scratch_;
        scratch_ += (bytes + 63) / 64 * 64;
        return offset;
    }

    // A sum over the samples: calls write partials to its slot, and the components' canonical sums are
    // written to externals[external] + offset, one after the other, when the last such call is done.
    int sum(int external, std::int64_t offset, int components, bool is_double) {
        checkExternal(external);
        require(components >= 1, "sum: ", components, " components; give at least 1");
        Sum sum{external, offset, components, is_double, 0, {}};
        sum.partials.resize(static_cast<std::size_t>(components * blocks()));  // doubles, also for floats
        sums_.push_back(std::move(sum));
        return static_cast<int>(sums_.size()) - 1;
    }

    void call(Entry entry, const std::vector<Slot>& slots) {
        require(entry != nullptr, "call: the entry is a null pointer");
        for (const Slot& slot : slots)
            if (checkSlot(slot) && slot.where == Where::Sum) sums_[at(slot.index)].segment = segment();
        push({Kind::Call, entry, 0, 0, 0, 0}, slots);
    }

    void copy(const Slot& to, const Slot& from, int components, int itemsize) {
        checkMove("copy", {to, from}, components, itemsize);
        push({Kind::Copy, nullptr, 0, 0, components, itemsize}, {to, from});
    }

    // to = ((from[0] + from[1]) + from[2]) ...
    void join(const Slot& to, const std::vector<Slot>& from, int components, bool is_double) {
        require(!from.empty(), "join: no sources; give at least 1");
        std::vector<Slot> slots{to};
        slots.insert(slots.end(), from.begin(), from.end());
        const int itemsize = is_double ? 8 : 4;
        checkMove("join", slots, components, itemsize);
        push({Kind::Join, nullptr, 0, 0, components, itemsize}, slots);
    }

    void zero(const Slot& to, int components, int itemsize) {
        checkMove("zero", {to}, components, itemsize);
        push({Kind::Zero, nullptr, 0, 0, components, itemsize}, {to});
    }

    // All blocks finish the steps before it first.
    void barrier() {
        if (segments_.back().steps < steps_.size()) segments_.push_back({steps_.size(), moving_.size()});
    }

    // ---- running --------------------------------------------------------------------------------------

    // The right to set externals and to run: one holder at a time, false when another has it.
    class Turn final {
    public:
        explicit Turn(Executor& executor)
            : running_(executor.running_), mine_(!running_.exchange(true, std::memory_order_acquire)) {}
        ~Turn() {
            if (mine_) running_.store(false, std::memory_order_release);
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        explicit operator bool() const { return mine_; }

    private:
        std::atomic<bool>& running_;
        bool mine_;
    };

    void setExternal(int index, void* address) { externals_[at(checkExternal(index))] = static_cast<char*>(address); }

    // Whether the last run took so little time that giving up a lock for its sake does not pay.
    bool isBrief() const { return last_run_ <= kBrief; }

    // Runs the steps once. Call it during a turn; `run` takes one itself.
    Outcome execute(team::Watch& watch) {
        const auto start = team::Clock::now();
        if (samples_ > 0) {
            if (!isBrief()) watch.begins();
            resolve();
            for (std::size_t s = 0; s < segments_.size(); ++s) {
                if (!pass(s, watch)) return Outcome::Cancelled;
                finishSums(static_cast<int>(s));
            }
        } else {
            finishSums(kAll);
        }
        last_run_ = team::Clock::now() - start;
        return Outcome::Done;
    }

    Outcome run(team::Watch& watch) {
        const Turn turn(*this);
        return turn ? execute(watch) : Outcome::Busy;
    }

private:
    using Duration = team::Clock::duration;

    enum class Kind { Call, Copy, Join, Zero };

    struct Step {
        Kind kind;
        Entry entry;
        std::size_t first;  // its slots
        int slots;
        int components;
        int itemsize;
    };

    // A slot whose address depends on the run or the block: start + block * step.
    struct Moving {
        std::size_t slot;
        int external;  // or -1: start is fixed
        std::int64_t offset;
        std::int64_t step;
        char* start;
    };

    // A run of steps between barriers: from these positions to those of the next segment.
    struct Segment {
        std::size_t steps;
        std::size_t moving;
    };

    struct Sum {
        int external;
        std::int64_t offset;
        int components;
        bool is_double;
        int segment;  // the last one that writes it
        std::vector<double> partials;  // component by component; floats use the front half

        std::int64_t itemsize() const { return is_double ? 8 : 4; }
    };

    // One thread's addresses and scratch memory. They share an allocation that starts and ends on a cache
    // line: neighbouring threads write their addresses for every block.
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

    static constexpr Duration kBrief = std::chrono::microseconds(20);      // not worth releasing a lock
    static constexpr Duration kWorthATeam = std::chrono::microseconds(20);  // starting one takes a few
    static constexpr Duration kChunk = std::chrono::microseconds(20);
    static constexpr int kAll = -1;

    // ---- building -------------------------------------------------------------------------------------

    template <class... Parts>
    static void require(bool holds, Parts... parts) {
        if (holds) return;
        std::string message;
        ((message += text(parts)), ...);
        throw std::invalid_argument(message);
    }
    static std::string text(const char* part) { return part; }
    static std::string text(std::int64_t part) { return std::to_string(part); }

    static std::size_t at(int index) { return static_cast<std::size_t>(index); }

    static std::size_t checked(std::int64_t samples, int externals) {
        require(samples >= 0, "Executor: ", samples, " samples; give a number >= 0");
        require(externals >= 0, "Executor: ", externals, " externals; give a number >= 0");
        return at(externals);
    }

    int checkExternal(int index) const {
        require(index >= 0 && index < externals(), "external ", index, " of ", externals(),
                "; externals are numbered from 0");
        return index;
    }

    bool checkSlot(const Slot& slot) const {
        switch (slot.where) {
            case Where::Plane:
            case Where::Cell: return checkExternal(slot.index) >= 0;
            case Where::Scratch:
                require(slot.offset >= 0 && slot.offset <= scratch_, "a slot at byte ", slot.offset, " of ", scratch_,
                        " bytes of scratch; reserve it first");
                return true;
            case Where::Sum:
                require(slot.index >= 0 && at(slot.index) < sums_.size(), "sum ", slot.index, " of ",
                        std::int64_t(sums_.size()), "; declare it first");
                return true;
        }
        return true;
    }

    // For the steps done here: slots[0] is written.
    void checkMove(const char* step, const std::vector<Slot>& slots, int components, int itemsize) const {
        require(components >= 1, step, ": ", components, " components; give at least 1");
        require(isWord(itemsize), step, ": an itemsize of ", itemsize, " bytes; it can be 1, 2, 4 or 8");
        require(slots[0].where != Where::Cell, step, ": writes a cell, which all blocks share; write a plane or scratch");
        for (const Slot& slot : slots) {
            checkSlot(slot);
            require(slot.where != Where::Sum, step, ": a sum's partials belong to calls; use a plane or scratch");
            if (slot.where != Where::Scratch) continue;
            const std::int64_t end = slot.offset + (components - 1) * slot.component_stride +
                                     (kBlock - 1) * slot.sample_stride + itemsize;
            require(end <= scratch_, step, ": a slot up to byte ", end, " of ", scratch_, " bytes of scratch");
        }
    }

    int segment() const { return static_cast<int>(segments_.size()) - 1; }

    void push(Step step, const std::vector<Slot>& slots) {
        frames_.clear();
        step.first = slots_.size();
        step.slots = static_cast<int>(slots.size());
        steps_.push_back(step);
        for (Slot slot : slots) {
            if (slot.where == Where::Sum) {
                Sum& sum = sums_[at(slot.index)];
                slot.component_stride = blocks() * sum.itemsize();
                moving_.push_back({slots_.size(), -1, 0, sum.itemsize(), reinterpret_cast<char*>(sum.partials.data())});
            } else if (slot.where != Where::Scratch) {
                const std::int64_t step = slot.where == Where::Plane ? kBlock * slot.sample_stride : 0;
                moving_.push_back({slots_.size(), slot.index, slot.offset, step, nullptr});
            }
            slots_.push_back(slot);
        }
    }

    // ---- running --------------------------------------------------------------------------------------

    char* external(int index) const {
        char* address = externals_[at(index)];
        if (address == nullptr)
            throw std::logic_error("external " + std::to_string(index) + " is used but was never set");
        return address;
    }

    void resolve() {
        for (Moving& moving : moving_)
            if (moving.external >= 0) moving.start = external(moving.external) + moving.offset;
    }

    Frame& frame(int thread) {
        std::unique_ptr<Frame>& frame = frames_[at(thread)];
        if (!frame) frame = std::make_unique<Frame>(slots_, scratch_);  // by its own thread: memory near it
        return *frame;
    }

    void reserveFrames(int threads) {
        if (frames_.size() < at(threads)) frames_.resize(at(threads));
    }

    // One segment over all blocks; false when cancelled. The first blocks run here and are timed: a team
    // is worth its start only when enough work is left.
    bool pass(std::size_t segment, team::Watch& watch) {
        reserveFrames(1);
        const std::int64_t blocks = this->blocks();
        if (blocks == 1) {
            runBlock(segment, frame(0), 0);
            return true;
        }
        const auto start = team::Clock::now();
        for (std::int64_t done = 0;;) {
            runBlock(segment, frame(0), done++);
            if (done == blocks) return true;
            const Duration spent = team::Clock::now() - start;
            const std::int64_t left = blocks - done;
            if (spent / done * left <= kWorthATeam) continue;
            watch.begins();
            const int threads = static_cast<int>(std::min<std::int64_t>(team::size(), left));
            reserveFrames(threads);
            const Duration each = std::max(spent / done, Duration(1));
            const std::int64_t most = std::max<std::int64_t>(left / (4 * threads), 1);
            const std::int64_t chunk = std::clamp<std::int64_t>(kChunk / each, 1, most);
            return team::deal(done, blocks, chunk, threads, watch, [&](int thread, std::int64_t at, std::int64_t last) {
                for (Frame& mine = frame(thread); at < last; ++at) runBlock(segment, mine, at);
            });
        }
    }

    void runBlock(std::size_t segment, Frame& frame, std::int64_t block) const {
        const bool last = segment + 1 == segments_.size();
        const std::size_t moving_end = last ? moving_.size() : segments_[segment + 1].moving;
        const std::size_t steps_end = last ? steps_.size() : segments_[segment + 1].steps;
        const std::int64_t count = std::min(kBlock, samples_ - block * kBlock);
        for (std::size_t k = segments_[segment].moving; k < moving_end; ++k)
            frame.addresses[moving_[k].slot].base = moving_[k].start + block * moving_[k].step;
        for (std::size_t k = segments_[segment].steps; k < steps_end; ++k) runStep(steps_[k], frame, count);
    }

    void runStep(const Step& step, const Frame& frame, std::int64_t count) const {
        const auto slot = [&](int k) {
            const std::size_t at = step.first + static_cast<std::size_t>(k);
            return Strided{frame.addresses[at], slots_[at].sample_stride};
        };
        const auto source = [&](int k) { return slot(k + 1); };
        switch (step.kind) {
            case Kind::Call: return step.entry(frame.addresses + step.first, count);
            case Kind::Copy: return copyBlock(slot(0), slot(1), step.components, step.itemsize, count);
            case Kind::Zero: return zeroBlock(slot(0), step.components, step.itemsize, count);
            case Kind::Join:
                if (step.itemsize == 8) return joinBlock<double>(slot(0), step.slots - 1, source, step.components, count);
                return joinBlock<float>(slot(0), step.slots - 1, source, step.components, count);
        }
    }

    void finishSums(int segment) {
        for (const Sum& sum : sums_) {
            if (segment != kAll && sum.segment != segment) continue;
            char* result = external(sum.external) + sum.offset;
            if (sum.is_double)
                finish(sum, sum.partials.data(), result);
            else
                finish(sum, reinterpret_cast<const float*>(sum.partials.data()), result);
        }
    }

    template <class T>
    void finish(const Sum& sum, const T* partials, char* result) const {
        for (int c = 0; c < sum.components; ++c)
            detail::store(result + c * sizeof(T), treeOfBlocks(partials + c * blocks(), blocks()));
    }

    std::int64_t samples_;
    std::vector<char*> externals_;
    std::int64_t scratch_ = 0;
    std::vector<Step> steps_;
    std::vector<Slot> slots_;
    std::vector<Moving> moving_;
    std::vector<Segment> segments_{{0, 0}};
    std::vector<Sum> sums_;
    std::vector<std::unique_ptr<Frame>> frames_;  // by thread
    std::atomic<bool> running_{false};
    Duration last_run_ = Duration::max();  // unknown: taken to be long
};

}  // namespace eagle
