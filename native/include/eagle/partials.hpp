// What the blocks of a run contribute to a sum over the samples, until all of them are through.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "sum.hpp"

namespace eagle {

// One value per component and row. A plain sum has a row for every block: a call stores the block's sums,
// and the totals are canonical. A table sum, whose components are the elements of a table, has a row for
// every part, some consecutive blocks of fixed number: calls add to the row, which one thread clears and
// takes the part's blocks through in order. The totals are trees over the rows.
class Partials final {
public:
    static Partials ofBlocks(std::int64_t blocks, int components, bool is_double) {
        return {blocks, components, is_double, false};
    }
    static Partials ofParts(std::int64_t parts, int components, bool is_double) {
        return {parts, components, is_double, true};
    }

    bool isTable() const { return is_table_; }
    std::int64_t itemsize() const { return is_double_ ? 8 : 4; }

    // Rows of a table sum are contiguous, for whoever adds to them; components of a plain one, for the tree.
    char* row(std::int64_t row) { return reinterpret_cast<char*>(values_.data()) + row * rowStride(); }
    std::int64_t rowStride() const { return itemsize() * (is_table_ ? components_ : 1); }
    std::int64_t componentStride() const { return itemsize() * (is_table_ ? 1 : rows_); }

    void clear(std::int64_t row) { std::memset(this->row(row), 0, static_cast<std::size_t>(rowStride())); }

    // Writes the totals, one component after the other.
    void total(char* to) const {
        if (is_double_)
            total(values_.data(), to);
        else
            total(reinterpret_cast<const float*>(values_.data()), to);
    }

private:
    Partials(std::int64_t rows, int components, bool is_double, bool is_table)
        : rows_(rows),
          components_(components),
          is_double_(is_double),
          is_table_(is_table),
          values_(static_cast<std::size_t>(rows * components * itemsize() + 7) / 8) {}

    template <class T>
    void total(const T* values, char* to) const {
        constexpr std::int64_t size = sizeof(T);
        for (int c = 0; c < components_; ++c) {
            const T sum = treeOfBlocks(values + c * componentStride() / size, rows_, rowStride() / size);
            std::memcpy(to + c * size, &sum, sizeof sum);
        }
    }

    std::int64_t rows_;
    int components_;
    bool is_double_;
    bool is_table_;
    std::vector<double> values_;  // floats lie in it two by two
};

}  // namespace eagle
