// Copies from another device's memory: one, a list, and over which link.
#include "../unit/support/stub_queue.h"
#include "boxes.h"
#include "conformance.h"

#include <array>

namespace polder::conformance {

TEST_P(DriverConformance, PeersCopyDirectly) {
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    driver::PeerCopy* const peer = device().peer_copy();
    if (!peer)
        GTEST_SKIP() << "has no peers";
    ASSERT_TRUE(peer->link(other->info().space));
    constexpr uint64_t size = 3'000'000;
    const Bytes in = random_bytes(size, 8);
    Bytes out(size);
    const DeviceBytes source(*other, size);
    const DeviceBytes target(device(), size);
    const auto other_queue = make_queue(*other);
    const auto queue = make_queue();
    const std::array written{upload(*other_queue, source.at(), in.data(), size)};
    static_cast<void>(peer->copy(*queue, other->info().space,
                                 {device_end(source.at()), device_end(target.at()), {size, 1, 1}},
                                 driver::Submission{written}));
    wait(download(*queue, out.data(), target.at(), size));
    EXPECT_EQ(in, out);
}

TEST_P(DriverConformance, PeersCopyRowsAndNothingElse) {
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    driver::PeerCopy* const peer = device().peer_copy();
    if (!peer)
        GTEST_SKIP() << "has no peers";
    const BoxCase box{{30, 20, 10}, {50, 1200}, {64, 2000}};
    const Bytes in = random_bytes(box.from.slice_pitch * box.shape.slices, 9);
    Bytes expected = random_bytes(box.to.slice_pitch * box.shape.slices, 10);
    Bytes out(expected.size());
    const DeviceBytes source(*other, in.size());
    const DeviceBytes target(device(), expected.size());
    const auto other_queue = make_queue(*other);
    const auto queue = make_queue();
    const std::array written{upload(*other_queue, source.at(), in.data(), in.size()),
                             upload(*queue, target.at(), expected.data(), expected.size())};
    const CopyOperation copy{{CopyOperation::Place::device, source.at(), box.from},
                             {CopyOperation::Place::device, target.at(), box.to},
                             box.shape};
    static_cast<void>(peer->copy(*queue, other->info().space, copy, driver::Submission{written}));
    wait(download(*queue, out.data(), target.at(), out.size()));
    copy_box(box, in, expected);
    EXPECT_EQ(expected, out);
}

TEST_P(DriverConformance, ALinkToAPeerHasHopsAndNeverChanges) {
    driver::PeerCopy* const peer = device().peer_copy();
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    if (!peer)
        GTEST_SKIP() << "has no peers";
    const auto link = peer->link(other->info().space);
    ASSERT_TRUE(link.has_value());
    EXPECT_GE(link->hops, 1u);
    const auto again = peer->link(other->info().space);
    ASSERT_TRUE(again.has_value());
    EXPECT_FALSE(link->is_nearer_than(*again) || again->is_nearer_than(*link));
    // Both ways over one link.
    const auto back = other->peer_copy()->link(device().info().space);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->hops, link->hops);
    EXPECT_EQ(back->bytes_per_second, link->bytes_per_second);
    EXPECT_FALSE(peer->link(device().info().space).has_value()) << "its own memory is no peer's";
    EXPECT_FALSE(peer->link(host_space).has_value());
    EXPECT_FALSE(peer->link(SpaceId{40}).has_value()) << "there is no such device";
}

TEST_P(DriverConformance, AListOfPeerCopiesCopiesAllOfThem) {
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    driver::PeerCopy* const peer = device().peer_copy();
    if (!peer)
        GTEST_SKIP() << "has no peers";
    constexpr uint64_t size = 1'000'000;
    constexpr uint64_t pieces = 100;
    const Bytes in = random_bytes(size, 8);
    Bytes expected(size);
    Bytes out(size);
    const DeviceBytes source(*other, size);
    const DeviceBytes target(device(), size);
    const auto other_queue = make_queue(*other);
    const auto queue = make_queue();
    // Pieces of different lengths, in the opposite order.
    std::vector<CopyOperation> list;
    constexpr uint64_t step = size / pieces;
    for (uint64_t i = 0; i < pieces; ++i) {
        const uint64_t from = i * step;
        const uint64_t to = (pieces - 1 - i) * step;
        const uint64_t bytes = step - i;
        list.push_back({device_end(source.at(from)), device_end(target.at(to)), {bytes, 1, 1}});
        std::memcpy(expected.data() + to, in.data() + from, bytes);
    }
    list.push_back({{CopyOperation::Place::device, source.at(0), {step, 0}},
                    {CopyOperation::Place::device, target.at(step - 50), {step, 0}},
                    {2, 10, 1}});
    for (uint64_t y = 0; y < 10; ++y)
        std::memcpy(expected.data() + step - 50 + y * step, in.data() + y * step, 2);
    const std::byte zero{};
    const std::array written{upload(*other_queue, source.at(), in.data(), size),
                             queue->fill({target.at(), size, {&zero, 1}}, {})};
    driver::OperationTimes times;
    const Timepoint copied = peer->copy_all(*queue, other->info().space, list, {written, &times});
    list.clear();
    EXPECT_EQ(copied.queue, queue.get());
    EXPECT_GT(copied.value, 1u);
    EXPECT_LE(copied.value, 1 + pieces + 1);
    wait(copied);
    EXPECT_EQ(queue->status(copied.value), Status::success);
    EXPECT_NE(times.start_ns.load(), 0u);
    EXPECT_GE(times.end_ns.load(), times.start_ns.load());
    wait(download(*queue, out.data(), target.at(), size));
    EXPECT_EQ(expected, out);
}

TEST_P(DriverConformance, AListOfPeerCopiesFailsWithWhatItWaitsFor) {
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    driver::PeerCopy* const peer = device().peer_copy();
    if (!peer)
        GTEST_SKIP() << "has no peers";
    const DeviceBytes source(*other, 4096);
    const DeviceBytes target(device(), 4096);
    const auto queue = make_queue();
    const Bytes before = random_bytes(4096, 2);
    wait(upload(*queue, target.at(), before.data(), 4096));
    test::FailedQueue failed;
    const std::array waits{Timepoint{&failed, 1}};
    const CopyOperation half{device_end(source.at()), device_end(target.at()), {2048, 1, 1}};
    const CopyOperation rest{device_end(source.at(2048)), device_end(target.at(2048)), {2048, 1, 1}};
    const std::array list{half, rest};
    const Timepoint copied = peer->copy_all(*queue, other->info().space, list, {waits});
    wait(copied);
    EXPECT_EQ(queue->status(copied.value), Status::exec_status_error_for_events_in_wait_list);
    Bytes out(4096);
    wait(download(*queue, out.data(), target.at(), 4096));
    EXPECT_EQ(out, before);
}

}  // namespace polder::conformance
