#include "workgroup_memory_program.h"

namespace polder::compiler::workgroup::test {

namespace {

template <class T>
Elements<T> random_elements(std::mt19937& random, size_t count, int64_t low, int64_t high) {
    Elements<T> result(count);
    for (T& element : result)
        element = static_cast<T>(low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low)));
    return result;
}

}  // namespace

MemoryBuffers::MemoryBuffers(uint32_t seed, uint64_t items) {
    std::mt19937 random(seed);
    const auto count = static_cast<size_t>(memory_elements);
    chars = random_elements<int8_t>(random, count, -128, 128);
    shorts = random_elements<uint16_t>(random, count, 0, 65536);
    ints = random_elements<int32_t>(random, count, -1000000, 1000000);
    longs = random_elements<int64_t>(random, count, -1000000, 1000000);
    floats = random_elements<float>(random, count, 0, 4000);
    out = random_elements<int32_t>(random, items * 4, -1000, 1000);
    bytes = random_elements<uint8_t>(random, items, 0, 255);
    shifted = random_elements<int64_t>(random, items, -1000, 1000);
    result.assign(items, 0);
}

Arguments memory_arguments(MemoryBuffers& b, int32_t n) {
    return Arguments()
        .add(b.chars.data())
        .add(b.shorts.data())
        .add(b.ints.data())
        .add(b.longs.data())
        .add(b.floats.data())
        .add(b.out.data())
        .add(b.bytes.data())
        .add(b.shifted.data())
        .add(b.result.data())
        .add_local(8192)
        .add(n);
}

int64_t NumberType::wrap(int64_t value) const {
    const auto raw = static_cast<uint64_t>(value);
    switch (bits) {
    case 8: return is_signed ? int64_t{static_cast<int8_t>(raw)} : static_cast<uint8_t>(raw);
    case 16: return is_signed ? int64_t{static_cast<int16_t>(raw)} : static_cast<uint16_t>(raw);
    case 32: return is_signed ? int64_t{static_cast<int32_t>(raw)} : static_cast<uint32_t>(raw);
    default: return value;
    }
}

}  // namespace polder::compiler::workgroup::test
