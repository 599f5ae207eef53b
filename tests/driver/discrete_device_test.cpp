// What the discrete driver promises beyond the interface.

#include "driver_named.h"

#include <cstdlib>
#include <discrete/parameters.h>
#include <gtest/gtest.h>
#include <host/caches.h>
#include <host/interconnect.h>
#include <polder/driver.h>

namespace polder::discrete {
namespace {

std::unique_ptr<driver::Driver> make() { return conformance::driver_named("discrete"); }

TEST(DiscreteDevice, OpensOnlyWhenItIsNamed) { EXPECT_EQ(make()->count(), 0u); }

TEST(DiscreteDeviceDeathTest, AHostThreadThatTakesADeviceAddressForAPointerFaults) {
    const auto driver = make();
    const auto device = *driver->open(0, SpaceId{1}, "memory=1M");
    const driver::Memory memory = *device->reserve_memory(ByteCount{4096});
    EXPECT_DEATH(*reinterpret_cast<volatile char*>(memory.address.value) = 1, "");
}

TEST(DiscreteDevice, PeersAreOffWhenAsked) {
    const auto driver = make();
    const auto alone = *driver->open(0, SpaceId{1}, "memory=1M,peer=0");
    const auto social = *driver->open(1, SpaceId{2}, "memory=1M");
    EXPECT_EQ(alone->peer_copy(), nullptr);
    ASSERT_NE(social->peer_copy(), nullptr);
    EXPECT_FALSE(social->peer_copy()->link(SpaceId{1}));
    EXPECT_FALSE(social->peer_copy()->link(host_space));
}

TEST(DiscreteDevice, AllOfItsMemoryCanBeReserved) {
    const auto driver = make();
    const auto device = *driver->open(0, SpaceId{1}, "memory=3M");
    EXPECT_EQ(device->info().memory_bytes, 3u << 20);
    EXPECT_EQ(device->available_memory(), ByteCount{3u << 20});
    const auto all = device->reserve_memory(device->available_memory());
    ASSERT_TRUE(all.has_value());
    const auto more = device->reserve_memory(ByteCount{1});
    ASSERT_FALSE(more.has_value());
    EXPECT_NE(more.error().detail().find("asked for 1 bytes"), std::string_view::npos);
    device->release_memory(*all);
}

TEST(DiscreteDevice, HasTheTypeThatItsParametersName) {
    const auto driver = make();
    EXPECT_EQ((*driver->open(0, SpaceId{1}, ""))->info().type, driver::DeviceType::accelerator);
    EXPECT_EQ((*driver->open(1, SpaceId{2}, "type=gpu"))->info().type, driver::DeviceType::gpu);
}

// Its kernels run on the host's processor. dpctl's tests expect every device to have a cache.
TEST(DiscreteDevice, HasTheCacheOfTheHost) {
    const auto driver = make();
    const auto device = *driver->open(0, SpaceId{1}, "");
    const driver::CacheInfo host = devices::caches_of_host().last_level;
    EXPECT_EQ(device->info().global_cache.size_bytes, host.size_bytes);
    EXPECT_EQ(device->info().global_cache.line_bytes, host.line_bytes);
}

TEST(DiscreteParameters, AreRead) {
    const Parameters parameters = parse_parameters("memory=256M,bandwidth=16G,latency=5us,peer=0,type=gpu,host=1", 0);
    EXPECT_EQ(parameters.memory_bytes, uint64_t{256} << 20);
    EXPECT_EQ(parameters.link.bytes_per_second, uint64_t{16} << 30);
    EXPECT_EQ(parameters.link.latency_ns, 5000u);
    EXPECT_EQ(parameters.peer, Parameters::Peer::none);
    EXPECT_EQ(parameters.type, driver::DeviceType::gpu);
    EXPECT_EQ(parameters.host_memory, Parameters::HostMemory::in_place);
}

TEST(DiscreteParameters, MalformedPartsAreReportedInOneWarningAndDefaultsTaken) {
    testing::internal::CaptureStderr();
    const Parameters parameters = parse_parameters(
        "memory=lots,latency=7us,bandwidth=-1,peer=maybe,type=cpu,host=2,colour=blue,latency=5,,=,memory", 3);
    const std::string text = testing::internal::GetCapturedStderr();
    const Parameters defaults;
    EXPECT_EQ(parameters.memory_bytes, defaults.memory_bytes);
    EXPECT_EQ(parameters.link.bytes_per_second, defaults.link.bytes_per_second);
    EXPECT_EQ(parameters.link.latency_ns, 7000u);
    EXPECT_EQ(parameters.peer, Parameters::Peer::direct);
    EXPECT_EQ(parameters.type, driver::DeviceType::accelerator);
    EXPECT_EQ(parameters.host_memory, Parameters::HostMemory::copied);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_NE(text.find("POCL_DISCRETE3_PARAMETERS"), std::string::npos);
    EXPECT_NE(text.find("\"colour=blue\""), std::string::npos);
    EXPECT_EQ(text.find("latency=7us"), std::string::npos);
}

TEST(DiscreteParameters, NothingIsNoReasonForAWarning) {
    testing::internal::CaptureStderr();
    static_cast<void>(parse_parameters("", 0));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

using devices::InterconnectModel;
using devices::LinkDirection;

TEST(DiscreteLink, TransfersInOneDirectionShareItsBandwidth) {
    InterconnectModel link({1'000'000'000, 0});
    EXPECT_EQ(link.reserve(LinkDirection::in, 1000, 5000), 6000u);
    EXPECT_EQ(link.reserve(LinkDirection::in, 1000, 5000), 7000u);
    EXPECT_EQ(link.reserve(LinkDirection::in, 500, 20000), 20500u);
}

TEST(DiscreteLink, DirectionsAreIndependent) {
    InterconnectModel link({1'000'000'000, 0});
    EXPECT_EQ(link.reserve(LinkDirection::in, 1000, 0), 1000u);
    EXPECT_EQ(link.reserve(LinkDirection::out, 1000, 0), 1000u);
    EXPECT_EQ(link.reserve(LinkDirection::peer, 1000, 0), 1000u);
}

TEST(DiscreteLink, LatencyDelaysWithoutOccupying) {
    InterconnectModel link({1'000'000'000, 300});
    EXPECT_EQ(link.reserve(LinkDirection::in, 1000, 0), 1300u);
    EXPECT_EQ(link.reserve(LinkDirection::in, 1000, 0), 2300u);
    InterconnectModel unlimited({0, 300});
    EXPECT_EQ(unlimited.reserve(LinkDirection::out, 1 << 30, 100), 400u);
}

TEST(DiscreteLink, CopiesWithinTheDeviceCostNothing) {
    InterconnectModel link({1, 1'000'000});
    EXPECT_EQ(link.reserve(LinkDirection::local, 1 << 30, 77), 77u);
}

} // namespace
} // namespace polder::discrete
