// What an executor does itself on the samples of one block: copy, add up, clear. Strides are in bytes and
// may be anything; nothing needs to be aligned.

#pragma once

#include <cstdint>
#include <cstring>

#include "sum.hpp"

namespace eagle {

// Where one argument of a block lies: sample 0 of component 0, and the bytes from component to component.
struct Address {
    char* base;
    std::int64_t component_stride;
};

// One argument of one block together with the bytes from sample to sample.
struct Strided {
    Address address;
    std::int64_t sample_stride;

    char* component(std::int64_t c) const { return address.base + c * address.component_stride; }
};

namespace detail {

template <class T>
inline T load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
inline void store(char* at, T value) {
    std::memcpy(at, &value, sizeof value);
}

template <class Word>
void copySamples(char* to, std::int64_t to_stride, const char* from, std::int64_t from_stride,
                 std::int64_t count) {
    constexpr std::int64_t size = sizeof(Word);
    if (to_stride == size && from_stride == size)
        std::memcpy(to, from, static_cast<std::size_t>(count * size));
    else
        for (std::int64_t i = 0; i < count; ++i)
            store(to + i * to_stride, load<Word>(from + i * from_stride));
}

template <class Word>
void copyWords(const Strided& to, const Strided& from, int components, std::int64_t count) {
    for (int c = 0; c < components; ++c)
        copySamples<Word>(to.component(c), to.sample_stride, from.component(c), from.sample_stride, count);
}

template <class T>
void addSamples(T* sum, const char* from, std::int64_t stride, std::int64_t count) {
    constexpr std::int64_t size = sizeof(T);
    if (stride == size)  // the same loop, with a stride the compiler can vectorise
        for (std::int64_t i = 0; i < count; ++i) sum[i] += load<T>(from + i * size);
    else
        for (std::int64_t i = 0; i < count; ++i) sum[i] += load<T>(from + i * stride);
}

}  // namespace detail

// An itemsize that `copyBlock` knows.
inline constexpr bool isWord(int itemsize) {
    return itemsize == 1 || itemsize == 2 || itemsize == 4 || itemsize == 8;
}

// to = from.
inline void copyBlock(const Strided& to, const Strided& from, int components, int itemsize,
                      std::int64_t count) {
    switch (itemsize) {
        case 1: return detail::copyWords<std::uint8_t>(to, from, components, count);
        case 2: return detail::copyWords<std::uint16_t>(to, from, components, count);
        case 4: return detail::copyWords<std::uint32_t>(to, from, components, count);
        default: return detail::copyWords<std::uint64_t>(to, from, components, count);
    }
}

// to = ((from[0] + from[1]) + from[2]) ...; `to` may be any of them. `source(k)` gives from[k], k < sources.
template <class T, class Source>
void joinBlock(const Strided& to, int sources, Source&& source, int components, std::int64_t count) {
    constexpr std::int64_t size = sizeof(T);
    alignas(64) T sum[kBlock];
    for (int c = 0; c < components; ++c) {
        const Strided first = source(0);
        detail::copySamples<T>(reinterpret_cast<char*>(sum), size, first.component(c), first.sample_stride,
                               count);
        for (int k = 1; k < sources; ++k) {
            const Strided next = source(k);
            detail::addSamples(sum, next.component(c), next.sample_stride, count);
        }
        detail::copySamples<T>(to.component(c), to.sample_stride, reinterpret_cast<char*>(sum), size, count);
    }
}

// to = 0, in every byte of its items.
inline void zeroBlock(const Strided& to, int components, int itemsize, std::int64_t count) {
    const auto size = static_cast<std::size_t>(itemsize);
    for (int c = 0; c < components; ++c) {
        if (to.sample_stride == itemsize)
            std::memset(to.component(c), 0, size * static_cast<std::size_t>(count));
        else
            for (std::int64_t i = 0; i < count; ++i)
                std::memset(to.component(c) + i * to.sample_stride, 0, size);
    }
}

}  // namespace eagle
