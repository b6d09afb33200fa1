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
#include <stdexcept>
#include <string>
#include <vector>

#include "blocks.hpp"
#include "partials.hpp"
#include "slots.hpp"
#include "sum.hpp"
#include "team.hpp"

namespace eagle {

enum class Outcome {
    Done,
    Busy,       // this executor is running already; nothing was done
    Cancelled,  // some blocks were not run and no sum of the unfinished segment was written
};

class Executor final {
public:
    // `part_blocks`, a power of two, is the number of blocks in a part of the table sums; 0 for one that
    // makes at most 64 parts. Runs over passes of a batch need the same number for the same bits.
    explicit Executor(std::int64_t samples, std::int64_t part_blocks = 0) : samples_(samples) {
        require(samples >= 0, "Executor: ", samples, " samples; give a number >= 0");
        require(part_blocks >= 0 && (part_blocks & (part_blocks - 1)) == 0, "Executor: parts of ",
                part_blocks, " blocks; give a power of two");
        while (part_blocks > 0 ? partBlocks() < part_blocks : partBlocks() * kParts < blocks()) ++part_shift_;
    }

    std::int64_t samples() const { return samples_; }
    std::int64_t blocks() const { return blocksOf(samples_); }
    std::int64_t partBlocks() const { return std::int64_t{1} << part_shift_; }
    int externals() const { return static_cast<int>(externals_.size()); }

    // ---- building; std::invalid_argument for what cannot be run -------------------------------------

    // A piece of memory that slots refer to by the number returned; its address is set before running.
    int addExternal() {
        externals_.push_back(nullptr);
        return externals() - 1;
    }

    // Reserves scratch memory, of every thread, for one block; returns its offset, a multiple of 64.
    std::int64_t scratch(std::int64_t bytes) {
        require(bytes >= 0, "scratch: ", bytes, " bytes; give a size >= 0");
        frames_.clear();
        const std::int64_t offset = scratch_;
        scratch_ += (bytes + 63) / 64 * 64;
        return offset;
    }

    // A sum over the samples, for one call: its slot is the block's row of the partials, where the call
    // stores the sum of each component over the block. The canonical totals are written to
    // externals[external] + offset, one component after the other, when all blocks are through the segment of
    // that call.
    int sum(int external, std::int64_t offset, int components, bool is_double) {
        checkSum(external, components);
        return add({external, offset, Partials::ofBlocks(blocks(), components, is_double)});
    }

    // A sum over the samples whose components are the elements of a table, for one call: its slot is a whole
    // table, to which the call adds in sample order. The order of additions is fixed as well, by parts.
    int tableSum(int external, std::int64_t offset, int components, bool is_double) {
        checkSum(external, components);
        return add({external, offset, Partials::ofParts(units(part_shift_), components, is_double)});
    }

    // `any_count`: the entry also takes more than 256 samples at a time, which saves calls.
    void call(Entry entry, const std::vector<Slot>& slots, bool any_count = false) {
        require(entry != nullptr, "call: the entry is a null pointer");
        for (const Slot& slot : slots) checkSlot(slot);
        for (const Slot& slot : slots) {
            if (slot.where != Where::Sum) continue;
            Sum& sum = sums_[at(slot.index)];
            require(sum.segment == kNone, "sum ", slot.index, " has a call already; declare one for each");
            sum.segment = segment();
            if (!sum.partials.isTable()) continue;
            segments_.back().has_tables = true;
            segments_.back().shift = part_shift_;
        }
        push({Kind::Call, entry, 0, 0, 0, 0}, slots, any_count);
    }

    void copy(const Slot& to, const Slot& from, int components, int itemsize) {
        checkMove("copy", {to, from}, components, itemsize);
        push({Kind::Copy, nullptr, 0, 0, components, itemsize}, {to, from}, true);
    }

    // to = ((from[0] + from[1]) + from[2]) ...
    void join(const Slot& to, const std::vector<Slot>& from, int components, bool is_double) {
        require(!from.empty(), "join: no sources; give at least 1");
        std::vector<Slot> slots{to};
        slots.insert(slots.end(), from.begin(), from.end());
        const int itemsize = is_double ? 8 : 4;
        checkMove("join", slots, components, itemsize);
        push({Kind::Join, nullptr, 0, 0, components, itemsize}, slots, false);
    }

    void zero(const Slot& to, int components, int itemsize) {
        checkMove("zero", {to}, components, itemsize);
        push({Kind::Zero, nullptr, 0, 0, components, itemsize}, {to}, true);
    }

    // All blocks finish the steps before it first.
    void barrier() {
        if (segments_.back().steps < steps_.size()) segments_.push_back({steps_.size(), moving_.size()});
    }

    // The blocks of one pass finish before those of the next begin; 0: all blocks are one pass. Sums are made
    // of all blocks as ever, so bits do not depend on it. With table sums a pass is at least a part.
    void passes(std::int64_t blocks) {
        require(blocks >= 0, "passes: ", blocks, " blocks a pass; give a number >= 0");
        pass_blocks_ = blocks;
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

    void setExternal(int index, void* address) {
        externals_[at(checkExternal(index))] = static_cast<char*>(address);
    }

    // Whether the last run took so little time that giving up a lock for its sake does not pay.
    bool isBrief() const { return last_run_ <= kBrief; }

    // Runs the steps once. Call it during a turn; `run` takes one itself.
    Outcome execute(team::Watch& watch) {
        const auto start = team::Clock::now();
        worth_help_ = start - ended_ < kAwake ? kWorthHelp : kWorthWaking;
        if (samples_ > 0) {
            if (!isBrief()) watch.begins();
            resolve();
            for (int s = 0; s <= segment(); ++s) {
                if (!pass(s, watch)) return Outcome::Cancelled;
                finishSums(s);
            }
        } else {
            finishSums(kNone);
        }
        ended_ = team::Clock::now();
        last_run_ = ended_ - start;
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

    // A slot whose address depends on the run or the block: start + (block >> shift) * step.
    struct Moving {
        std::size_t slot;
        int external;  // or kNone: start is fixed
        std::int64_t offset;
        int shift;
        std::int64_t step;
        char* start;
    };

    // A run of steps between barriers: from these positions to those of the next segment.
    struct Segment {
        std::size_t steps;
        std::size_t moving;
        bool has_tables = false;
        std::int64_t strip = kStrip;  // the blocks that its steps take at a time
        int shift = 0;  // one thread takes a unit of 2^shift blocks in order: a part if there are table sums
    };

    struct Sum {
        int external;
        std::int64_t offset;
        Partials partials;
        int segment = kNone;  // that of its call
    };

    static constexpr Duration kBrief = std::chrono::microseconds(20);         // not worth releasing a lock
    static constexpr Duration kWorthHelp = std::chrono::microseconds(20);     // of helpers who are awake
    static constexpr Duration kWorthWaking = std::chrono::microseconds(100);  // helpers
    static constexpr Duration kAwake = std::chrono::microseconds(50);         // the time that helpers stay so
    static constexpr Duration kTiming = std::chrono::microseconds(2);         // to know what a block takes
    static constexpr Duration kChunk = std::chrono::microseconds(20);
    static constexpr std::int64_t kStrip = 8;
    static constexpr std::int64_t kTimed = 16;  // units between two looks at the clock, at most
    static constexpr std::int64_t kParts = 64;
    static constexpr int kNone = -1;

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

    int checkExternal(int index) const {
        require(index >= 0 && index < externals(), "external ", index, " of ", externals(),
                "; externals are numbered from 0");
        return index;
    }

    void checkSlot(const Slot& slot) const {
        if (slot.where == Where::Scratch)
            require(slot.offset >= 0 && slot.offset <= scratch_, "a slot at byte ", slot.offset, " of ",
                    scratch_, " bytes of scratch; reserve it first");
        else if (slot.where == Where::Sum)
            require(slot.index >= 0 && at(slot.index) < sums_.size(), "sum ", slot.index, " of ",
                    static_cast<std::int64_t>(sums_.size()), "; declare it first");
        else
            checkExternal(slot.index);
    }

    void checkSum(int external, int components) const {
        checkExternal(external);
        require(components >= 1, "sum: ", components, " components; give at least 1");
    }

    // For the steps done here: slots[0] is written.
    void checkMove(const char* step, const std::vector<Slot>& slots, int components, int itemsize) const {
        require(components >= 1, step, ": ", components, " components; give at least 1");
        require(isWord(itemsize), step, ": an itemsize of ", itemsize, " bytes; it can be 1, 2, 4 or 8");
        require(slots[0].where != Where::Cell, step,
                ": writes a cell, which all blocks share; write a plane or scratch");
        for (const Slot& slot : slots) {
            checkSlot(slot);
            require(slot.where != Where::Sum, step,
                    ": a sum's partials belong to calls; use a plane or scratch");
            if (slot.where != Where::Scratch) continue;
            const std::int64_t end = slot.offset + (components - 1) * slot.component_stride +
                                     (kBlock - 1) * slot.sample_stride + itemsize;
            require(end <= scratch_, step, ": up to byte ", end, " of ", scratch_, " bytes of scratch");
        }
    }

    int segment() const { return static_cast<int>(segments_.size()) - 1; }

    // How many units of 2^shift blocks the batch has, the last one perhaps a short one.
    std::int64_t units(int shift) const { return (blocks() + (std::int64_t{1} << shift) - 1) >> shift; }

    int add(Sum sum) {
        sums_.push_back(std::move(sum));
        return static_cast<int>(sums_.size()) - 1;
    }

    void push(Step step, const std::vector<Slot>& slots, bool any_count) {
        frames_.clear();
        const auto of_a_block = [](const Slot& s) {
            return s.where == Where::Scratch || s.where == Where::Sum;
        };
        if (!any_count || std::any_of(slots.begin(), slots.end(), of_a_block)) segments_.back().strip = 1;
        step.first = slots_.size();
        step.slots = static_cast<int>(slots.size());
        steps_.push_back(step);
        for (Slot slot : slots) {
            if (slot.where == Where::Sum) {
                Partials& partials = sums_[at(slot.index)].partials;
                slot.component_stride = partials.componentStride();
                const int shift = partials.isTable() ? part_shift_ : 0;
                moving_.push_back({slots_.size(), kNone, 0, shift, partials.rowStride(), partials.row(0)});
            } else if (slot.where != Where::Scratch) {
                const std::int64_t step = slot.where == Where::Plane ? kBlock * slot.sample_stride : 0;
                moving_.push_back({slots_.size(), slot.index, slot.offset, 0, step, nullptr});
            }
            slots_.push_back(slot);
        }
    }

    // ---- running --------------------------------------------------------------------------------------

    char* external(int index) const {
        char* address = externals_[at(index)];
        if (address == nullptr)
            throw std::logic_error("external " + std::to_string(index) + " is used but not set");
        return address;
    }

    void resolve() {
        for (std::size_t k = 0; k < sums_.size(); ++k)
            if (sums_[k].segment == kNone)
                throw std::logic_error("sum " + std::to_string(k) + " is declared but has no call");
        for (Moving& moving : moving_)
            if (moving.external != kNone) moving.start = external(moving.external) + moving.offset;
    }

    Frame& frame(int thread) {
        std::unique_ptr<Frame>& frame = frames_[at(thread)];
        if (!frame) frame = std::make_unique<Frame>(slots_, scratch_);  // by its own thread: memory near it
        return *frame;
    }

    void reserveFrames(int threads) {
        if (frames_.size() < at(threads)) frames_.resize(at(threads));
    }

    // One segment over all blocks, pass after pass; false when cancelled.
    bool pass(int segment, team::Watch& watch) {
        const int shift = segments_[at(segment)].shift;
        const std::int64_t units = this->units(shift);
        const std::int64_t each = pass_blocks_ > 0 ? std::max<std::int64_t>(pass_blocks_ >> shift, 1) : units;
        for (std::int64_t first = 0; first < units; first += each)
            if (!passUnits(segment, first, std::min(first + each, units), watch)) return false;
        return true;
    }

    // Some units of a segment; false when cancelled. The first ones run here and are timed: help is worth its
    // cost only when enough work is left.
    bool passUnits(int segment, std::int64_t first, std::int64_t units, team::Watch& watch) {
        reserveFrames(1);
        std::int64_t done = first;
        const auto start = units - first > 1 ? team::Clock::now() : team::Clock::time_point();
        for (;;) {
            const std::int64_t count = std::clamp<std::int64_t>(done - first, 1, kTimed);
            const std::int64_t next = std::min(done + count, units);
            runUnits(segment, frame(0), done, next);
            done = next;
            if (done == units) return true;
            const Duration spent = team::Clock::now() - start;
            const std::int64_t left = units - done;
            if (spent < kTiming || spent / (done - first) * left <= worth_help_) continue;
            worth_help_ = kWorthHelp;
            watch.begins();
            const int threads = static_cast<int>(std::min<std::int64_t>(team::size(), left));
            reserveFrames(threads);
            const Duration each = std::max(spent / (done - first), Duration(1));
            const std::int64_t most = std::max<std::int64_t>(left / (4 * threads), 1);
            const std::int64_t chunk = std::clamp<std::int64_t>(kChunk / each, 1, most);
            const auto work = [&](int thread, std::int64_t unit, std::int64_t last) {
                runUnits(segment, frame(thread), unit, last);
            };
            return team::deal(done, units, chunk, threads, watch, work);
        }
    }

    void runUnits(int segment, Frame& frame, std::int64_t unit, std::int64_t last) {
        const Segment& self = segments_[at(segment)];
        if (!self.has_tables) return runBlocks(segment, frame, unit, last);
        for (; unit < last; ++unit) {
            for (Sum& sum : sums_)
                if (sum.segment == segment && sum.partials.isTable()) sum.partials.clear(unit);
            runBlocks(segment, frame, unit << self.shift, std::min((unit + 1) << self.shift, blocks()));
        }
    }

    void runBlocks(int segment, Frame& frame, std::int64_t block, std::int64_t last) const {
        const Segment& begin = segments_[at(segment)];
        const bool is_last = segment == this->segment();
        const std::size_t moving_end = is_last ? moving_.size() : segments_[at(segment) + 1].moving;
        const std::size_t steps_end = is_last ? steps_.size() : segments_[at(segment) + 1].steps;
        for (; block < last; block += begin.strip) {
            for (std::size_t k = begin.moving; k < moving_end; ++k) {
                const Moving& moving = moving_[k];
                frame.addresses[moving.slot].base = moving.start + (block >> moving.shift) * moving.step;
            }
            const std::int64_t first = block * kBlock;
            const std::int64_t end = std::min(std::min(block + begin.strip, last) * kBlock, samples_);
            for (std::size_t k = begin.steps; k < steps_end; ++k)
                runStep(steps_[k], frame, end - first, first);
        }
    }

    void runStep(const Step& step, const Frame& frame, std::int64_t count, std::int64_t first) const {
        const auto slot = [&](int k) {
            const std::size_t at = step.first + static_cast<std::size_t>(k);
            return Strided{frame.addresses[at], slots_[at].sample_stride};
        };
        const auto source = [&](int k) { return slot(k + 1); };
        switch (step.kind) {
            case Kind::Call: return step.entry(frame.addresses + step.first, count, first);
            case Kind::Copy: return copyBlock(slot(0), slot(1), step.components, step.itemsize, count);
            case Kind::Zero: return zeroBlock(slot(0), step.components, step.itemsize, count);
            case Kind::Join:
                if (step.itemsize == 8)
                    return joinBlock<double>(slot(0), step.slots - 1, source, step.components, count);
                return joinBlock<float>(slot(0), step.slots - 1, source, step.components, count);
        }
    }

    // The sums of a segment; kNone: of a run without samples.
    void finishSums(int segment) {
        for (const Sum& sum : sums_)
            if (segment == kNone || sum.segment == segment)
                sum.partials.total(external(sum.external) + sum.offset);
    }

    std::int64_t samples_;
    std::int64_t pass_blocks_ = 0;
    int part_shift_ = 0;
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
    team::Clock::time_point ended_;        // the last run
    Duration worth_help_ = kWorthWaking;   // in this run, by whether helpers are likely to be awake
};

}  // namespace eagle
