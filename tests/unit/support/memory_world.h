// A context over host memory and some fake devices with memory of their own, for tests of the memory layer.
#pragma once

#include "fake_device.h"

#include <memory/domain.h>
#include <memory/ledger.h>
#include <memory/space.h>
#include <memory/storage.h>

namespace polder::test {

enum class Peers : uint8_t { none, all };

class MemoryWorld {
public:
    struct Options {
        uint32_t separate_memories = 2;
        Peers peers = Peers::none;
        uint64_t seed = 1;
        uint64_t memory_bytes = uint64_t{1} << 20;
        bool has_bytes = true;
        uint32_t queues = 2;  // per space
        SpaceSet unified{};  // devices that use host memory too
        memory::DomainOptions domain;
        std::map<uint32_t, driver::PeerLink> links{};  // of every device to the peer of that number
    };

    explicit MemoryWorld(const Options& options) : world(options.seed) {
        std::vector<memory::Space*> pointers;
        SpaceSet all;
        for (uint32_t i = 1; i <= options.separate_memories; ++i)
            all.insert(SpaceId{i});
        for (uint32_t i = 0; i <= options.separate_memories; ++i) {
            SpaceSet peers = options.peers == Peers::all ? all : SpaceSet{};
            peers.erase(SpaceId{i});
            owned_devices_.push_back(std::make_unique<FakeDevice>(
                world,
                FakeDevice::Options{SpaceId{i}, options.memory_bytes, peers, options.has_bytes,
                                    options.unified.contains(SpaceId{i}), options.links},
                &devices));
            devices.push_back(owned_devices_.back().get());
            spaces_.push_back(i == 0 ? memory::Space::host(devices[0]) : memory::Space::of(*devices[i]));
            pointers.push_back(spaces_.back().get());
            for (uint32_t q = 0; q < options.queues; ++q)
                queues_.push_back(std::make_unique<FakeQueue>(world, *devices[i]));
        }
        queues_per_space_ = options.queues;
        domain = memory::Domain::create(pointers, options.domain);
    }

    [[nodiscard]] uint32_t spaces() const { return static_cast<uint32_t>(spaces_.size()); }
    [[nodiscard]] memory::Space& space(uint32_t index) { return *spaces_[index]; }
    [[nodiscard]] FakeQueue& queue(uint32_t space, uint32_t number = 0) {
        return *queues_[space * queues_per_space_ + number];
    }
    [[nodiscard]] memory::Execution on(uint32_t space, driver::Waits waits = {}, uint32_t number = 0) {
        return {queue(space, number), SpaceId{space}, waits};
    }

    Ref<memory::Storage> storage(uint64_t size, const memory::StorageOptions& options = {}) {
        return memory::Storage::create(*domain, ByteCount{size}, options).value();
    }

    // Plays a kernel: `work` gets the host pointers of its arguments when it executes.
    driver::Timepoint kernel(
        const memory::Execution& execution, std::vector<memory::Use> uses,
        std::function<void(const std::vector<std::byte*>&)> work = [](const auto&) {}) {
        FakeDevice& device = *devices[execution.space.value];
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
            const std::vector<DeviceAddress> kept(addresses.begin(), addresses.end());
            return static_cast<FakeQueue&>(execution.queue).submit({waits}, [&device, uses, kept, work] {
                std::vector<std::byte*> bytes;
                for (size_t i = 0; i < uses.size(); ++i)
                    bytes.push_back(device.bytes(kept[i], uses[i].range.size()));
                work(bytes);
            });
        };
        return domain->launch(execution, uses, submit).value();
    }
    // What a kernel that is launched now would have to wait for. It is submitted.
    std::vector<driver::Timepoint> waits_of_kernel(const memory::Execution& execution, const memory::Use& use) {
        std::vector<driver::Timepoint> seen;
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress>) {
            seen.assign(waits.begin(), waits.end());
            return static_cast<FakeQueue&>(execution.queue).submit({waits}, [] {});
        };
        EXPECT_TRUE(domain->launch(execution, {&use, 1}, submit));
        return seen;
    }

    // Bytes moved between memories since the last call.
    uint64_t moved() {
        const uint64_t bytes = domain->ledger().moved_bytes();
        EXPECT_EQ(bytes, domain->ledger().needed_bytes());
        domain->ledger().reset();
        return bytes;
    }

    FakeWorld world;
    std::vector<FakeDevice*> devices;

private:
    std::vector<std::unique_ptr<FakeDevice>> owned_devices_;
    std::vector<std::unique_ptr<memory::Space>> spaces_;
    std::vector<std::unique_ptr<FakeQueue>> queues_;
    uint32_t queues_per_space_ = 0;

public:
    std::unique_ptr<memory::Domain> domain;
};

// Bytes that differ from their neighbours, and between buffers that begin differently.
inline std::vector<std::byte> pattern(uint64_t bytes, uint8_t first) {
    std::vector<std::byte> result(bytes);
    for (uint64_t i = 0; i < bytes; ++i)
        result[i] = std::byte(static_cast<uint8_t>(first + i * 7));
    return result;
}

} // namespace polder::test
