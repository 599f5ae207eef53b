// Copies, fills and memory.
#include "boxes.h"
#include "conformance.h"

#include <array>

namespace polder::conformance {

TEST_P(DriverConformance, WhatIsCopiedInComesOut) {
    const auto queue = make_queue();
    for (const uint64_t size : {1ull, 3ull, 64ull, 4095ull, 65536ull, 700000ull, 5000001ull}) {
        const DeviceBytes memory(device(), size);
        const Bytes in = random_bytes(size, static_cast<uint32_t>(size));
        Bytes out(size);
        static_cast<void>(upload(*queue, memory.at(), in.data(), size));
        wait(download(*queue, out.data(), memory.at(), size));
        ASSERT_EQ(in, out) << size << " bytes";
    }
}

TEST_P(DriverConformance, CopiesWithinTheDeviceAndWithinTheHost) {
    constexpr uint64_t size = 10000;
    const auto queue = make_queue();
    const DeviceBytes memory(device(), 2 * size);
    const Bytes in = random_bytes(size, 5);
    Bytes middle(size);
    Bytes out(size);
    static_cast<void>(queue->copy({host_end(in.data()), host_end(middle.data()), {size, 1, 1}}, {}));
    static_cast<void>(upload(*queue, memory.at(), middle.data(), size));
    static_cast<void>(queue->copy({device_end(memory.at()), device_end(memory.at(size)), {size, 1, 1}}, {}));
    wait(download(*queue, out.data(), memory.at(size), size));
    EXPECT_EQ(in, out);
}

TEST_P(DriverConformance, RectCopiesMoveTheirRowsAndNothingElse) {
    const BoxCase cases[] = {
        {{7, 5, 1}, {7, 35}, {16, 80}},
        {{16, 4, 3}, {16, 64}, {16, 64}},
        {{13, 4, 3}, {20, 100}, {13, 52}},
        {{1000, 700, 2}, {1024, 1024 * 700}, {1001, 1001 * 701}},
        {{600000, 1, 2}, {600000, 700000}, {600000, 600001}},
    };
    const auto queue = make_queue();
    for (const BoxCase& box : cases) {
        const uint64_t from_bytes = (box.shape.slices - 1) * box.from.slice_pitch +
                                    (box.shape.rows - 1) * box.from.row_pitch + box.shape.row_bytes;
        const uint64_t to_bytes =
            (box.shape.slices - 1) * box.to.slice_pitch + (box.shape.rows - 1) * box.to.row_pitch + box.shape.row_bytes;
        const DeviceBytes source(device(), from_bytes);
        const DeviceBytes target(device(), to_bytes);
        const Bytes in = random_bytes(from_bytes, 3);
        Bytes expected = random_bytes(to_bytes, 4);
        Bytes out(to_bytes);
        static_cast<void>(upload(*queue, source.at(), in.data(), from_bytes));
        static_cast<void>(upload(*queue, target.at(), expected.data(), to_bytes));
        wait(queue->copy({{CopyOperation::Place::device, source.at(), box.from},
                          {CopyOperation::Place::device, target.at(), box.to},
                          box.shape},
                         {}));
        wait(download(*queue, out.data(), target.at(), to_bytes));
        copy_box(box, in, expected);
        ASSERT_EQ(expected, out);
    }
}

TEST_P(DriverConformance, RectCopiesGoBetweenHostAndDevice) {
    constexpr driver::RectShape shape{30, 20, 10};
    const driver::RectLayout loose{50, 1200};
    const driver::RectLayout tight{30, 600};
    const auto queue = make_queue();
    const DeviceBytes memory(device(), 12000);
    const Bytes in = random_bytes(6000, 6);
    Bytes out(6000);
    static_cast<void>(queue->copy({{CopyOperation::Place::host, DeviceAddress::of(in.data()), tight},
                                   {CopyOperation::Place::device, memory.at(), loose},
                                   shape},
                                  {}));
    wait(queue->copy({{CopyOperation::Place::device, memory.at(), loose},
                      {CopyOperation::Place::host, DeviceAddress::of(out.data()), tight},
                      shape},
                     {}));
    EXPECT_EQ(in, out);
}

TEST_P(DriverConformance, FillsRepeatPatternsOfEverySize) {
    const auto queue = make_queue();
    for (uint32_t pattern_bytes = 1; pattern_bytes <= driver::FillOperation::max_pattern_bytes; pattern_bytes *= 2)
        for (const uint64_t repeats : {1ull, 2ull, 33ull, 6000ull}) {
            const uint64_t size = pattern_bytes * repeats;
            const uint64_t guard = 64;
            const DeviceBytes memory(device(), size + 2 * guard);
            Bytes expected = random_bytes(size + 2 * guard, pattern_bytes);
            Bytes out(expected.size());
            wait(upload(*queue, memory.at(), expected.data(), expected.size()));
            {
                // Copied by the call.
                const Bytes pattern = random_bytes(pattern_bytes, 17);
                static_cast<void>(queue->fill({memory.at(guard), size, pattern}, {}));
                for (uint64_t i = 0; i < size; ++i)
                    expected[guard + i] = pattern[i % pattern_bytes];
            }
            wait(download(*queue, out.data(), memory.at(), out.size()));
            ASSERT_EQ(expected, out) << pattern_bytes << " bytes, " << repeats << " times";
        }
}

TEST_P(DriverConformance, FillsOfOneRepeatedByteWork) {
    const auto queue = make_queue();
    constexpr uint64_t size = 1 << 21;
    const DeviceBytes memory(device(), size);
    const Bytes zeros(16);
    Bytes out(size, std::byte{1});
    static_cast<void>(queue->fill({memory.at(), size, zeros}, {}));
    wait(download(*queue, out.data(), memory.at(), size));
    EXPECT_EQ(out, Bytes(size));
}

TEST_P(DriverConformance, TransferQueuesAreOrderedByTheirWaits) {
    constexpr uint64_t size = 1 << 20;
    const auto in_queue = make_queue(driver::QueueRole::transfer_in);
    const auto compute = make_queue(driver::QueueRole::compute);
    const auto out_queue = make_queue(driver::QueueRole::transfer_out);
    const DeviceBytes memory(device(), 2 * size);
    const Bytes in = random_bytes(size, 9);
    Bytes out(size);
    for (int round = 0; round < 20; ++round) {
        std::fill(out.begin(), out.end(), std::byte{0});
        const std::array copied_in{upload(*in_queue, memory.at(), in.data(), size)};
        const std::array copied{
            compute->copy({device_end(memory.at()), device_end(memory.at(size)), {size, 1, 1}}, {copied_in})};
        wait(download(*out_queue, out.data(), memory.at(size), size, copied));
        ASSERT_EQ(in, out);
    }
}

TEST_P(DriverConformance, MemoryIsReservedAndReturned) {
    if (device().info().space.is_host())
        GTEST_SKIP() << "computes in host memory";
    const uint64_t before = device().available_memory().value;
    const uint64_t half = device().info().memory_bytes / 2;
    EXPECT_GE(before, half);
    const auto first = device().reserve_memory(ByteCount{half});
    ASSERT_TRUE(first.has_value());
    EXPECT_GE(first->size, half);
    EXPECT_LE(device().available_memory().value, before - half);
    const auto too_much = device().reserve_memory(ByteCount{device().info().memory_bytes});
    ASSERT_FALSE(too_much.has_value());
    EXPECT_EQ(too_much.error().status(), Status::mem_object_allocation_failure);
    const auto second = device().reserve_memory(ByteCount{4096});
    ASSERT_TRUE(second.has_value());
    EXPECT_TRUE(second->address.value >= first->address.value + first->size ||
                second->address.value + second->size <= first->address.value);
    device().release_memory(*first);
    device().release_memory(*second);
    expect_available(before);
}

TEST_P(DriverConformance, AddressesAreAlignedAsTheDeviceSays) {
    const DeviceBytes first(device(), 1);
    const DeviceBytes second(device(), 1);
    EXPECT_EQ(first.at().value % device().info().base_address_alignment, 0u);
    EXPECT_EQ(second.at().value % device().info().base_address_alignment, 0u);
}

TEST_P(DriverConformance, TwoDevicesOfADriverWaitForEachOther) {
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    const auto here = make_queue();
    const auto there = make_queue(*other);
    Timepoint last;
    for (int i = 0; i < 1000; ++i) {
        const std::array waits{last};
        last = (i % 2 == 0 ? here : there)->marker({waits});
    }
    wait(last);
    EXPECT_EQ(here->completed(), 500u);
    EXPECT_EQ(there->completed(), 500u);
}

} // namespace polder::conformance
