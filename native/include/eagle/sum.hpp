// The canonical sum: one order of additions for a number of samples, whoever computes it.
//
// A block is 256 consecutive samples, a short one padded with -0.0 (x + -0.0 is x, also for x = -0.0).
// Inside a block the upper half is added to the lower half until one value is left; SIMD lanes and a GPU
// block do the same. Over blocks, in sample order, neighbours are added in pairs, level by level; an odd
// one passes up unchanged. So an aligned run of 2^q blocks is a subtree, and the sums of such runs may be
// computed apart and combined by the same tree. The sum of no samples is +0.0.

#pragma once

#include <cstdint>

namespace eagle {

inline constexpr std::int64_t kBlock = 256;

inline constexpr std::int64_t blocksOf(std::int64_t samples) { return (samples + kBlock - 1) / kBlock; }

// The tree over blocks, fed one block at a time in sample order.
template <class T>
class BlockTree {
public:
    void add(T value) {
        int level = 0;
        for (std::uint64_t left = blocks_++; left & 1; left >>= 1) value = levels_[level++] + value;
        levels_[level] = value;
    }

    T total() const {
        T value = T(0);
        bool first = true;
        for (int level = 0; blocks_ >> level; ++level) {
            if (!(blocks_ >> level & 1)) continue;
            value = first ? levels_[level] : levels_[level] + value;
            first = false;
        }
        return value;
    }

private:
    T levels_[64];  // levels_[k] is the sum of a finished subtree of 2^k blocks where bit k of blocks_ is set
    std::uint64_t blocks_ = 0;
};

namespace detail {

template <std::int64_t Half, class T>
inline T halve(T* values) {
    for (std::int64_t i = 0; i < Half; ++i) values[i] += values[i + Half];
    if constexpr (Half > 1)
        return halve<Half / 2>(values);
    else
        return values[0];
}

}  // namespace detail

// The sum of one block of `count` <= 256 samples, `stride` elements apart.
template <class T>
T blockSum(const T* samples, std::int64_t count, std::int64_t stride = 1) {
    alignas(64) T values[kBlock];
    for (std::int64_t i = 0; i < count; ++i) values[i] = samples[i * stride];
    for (std::int64_t i = count; i < kBlock; ++i) values[i] = T(-0.0);
    return detail::halve<kBlock / 2>(values);
}

// The tree over the sums of `blocks` blocks, `stride` elements apart.
template <class T>
T treeOfBlocks(const T* partials, std::int64_t blocks, std::int64_t stride = 1) {
    BlockTree<T> tree;
    for (std::int64_t block = 0; block < blocks; ++block) tree.add(partials[block * stride]);
    return tree.total();
}

// The canonical sum of `n` samples, `stride` elements apart.
template <class T>
T orderedSum(const T* samples, std::int64_t n, std::int64_t stride = 1) {
    BlockTree<T> tree;
    for (std::int64_t first = 0; first < n; first += kBlock) {
        const std::int64_t count = n - first < kBlock ? n - first : kBlock;
        tree.add(blockSum(samples + first * stride, count, stride));
    }
    return tree.total();
}

}  // namespace eagle
