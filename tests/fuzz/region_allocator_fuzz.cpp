// Interprets the input as a region and steps on it, against the plain model.
#include "../unit/region_model.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

class Input {
public:
    Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
    [[nodiscard]] bool empty() const { return size_ == 0; }
    template <class T>
    T take() {
        T value{};
        const size_t count = size_ < sizeof value ? size_ : sizeof value;
        std::memcpy(&value, data_, count);
        data_ += count;
        size_ -= count;
        return value;
    }

private:
    const uint8_t* data_;
    size_t size_;
};

void check(bool holds) {
    if (!holds)
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace polder;
    Input input{data, size};
    const uint64_t base = input.take<uint32_t>();
    const uint64_t bytes = input.take<uint32_t>() >> (input.take<uint8_t>() % 32);
    test::RegionModel model{
        {DeviceAddress{base}, ByteCount{bytes}, Alignment{uint64_t{1} << (input.take<uint8_t>() % 13)}}};
    while (!input.empty()) {
        const auto operation = input.take<uint8_t>();
        if (operation < 160) {
            const uint64_t wanted = uint64_t{input.take<uint16_t>()} << (operation % 48);
            check(model.allocate(ByteCount{wanted}, Alignment{uint64_t{1} << (input.take<uint8_t>() % 64)}));
        } else {
            check(model.free_nth(input.take<uint16_t>()));
        }
        check(model.agrees());
    }
    return 0;
}
