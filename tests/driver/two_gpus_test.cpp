// The memory layer over two GPUs of the fake CUDA library: what moves between them, counted by the library.
#include "conformance.h"
#include "driver_named.h"
#include "kernels.h"

#include <memory/domain.h>
#include <memory/space.h>
#include <memory/storage.h>

#include <array>
#include <fake_kernels.h>

namespace polder::conformance {
namespace {

constexpr uint64_t size = uint64_t{64} << 20;

struct Moved {
    uint64_t to_gpus = 0;
    uint64_t from_gpus = 0;
    uint64_t between_gpus = 0;

    friend bool operator==(const Moved&, const Moved&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Moved& moved) {
        return out << moved.to_gpus << " in, " << moved.from_gpus << " out, " << moved.between_gpus << " between";
    }
};

class TwoGpus : public testing::Test {
protected:
    void SetUp() override {
        driver_ = driver_named("cuda");
        bytes_ = fake_cuda::find<fake_cuda::CountBytes>("fake_cuda_bytes");
        ASSERT_NE(bytes_, nullptr) << "this is not the fake libcuda";
        std::vector<memory::Space*> spaces{host_.get()};
        for (uint32_t i = 0; i < 2; ++i) {
            devices_[i] = *driver_->open(i, SpaceId{i + 1}, "");
            queues_[i] = *devices_[i]->create_queue(driver::QueueRole::compute);
            kernels_[i] = *devices_[i]->load(fake_cuda::code_of({.function = CountVisits::run}));
            spaces_[i] = memory::Space::of(*devices_[i]);
            spaces.push_back(spaces_[i].get());
        }
        domain_ = memory::Domain::create(spaces);
        const Bytes zero(size);
        storage_ = *memory::Storage::create(*domain_, ByteCount{size}, {.initial_contents = zero.data()});
        moved();  // by other tests
    }
    [[nodiscard]] memory::Execution on(uint32_t gpu) { return {*queues_[gpu], SpaceId{gpu + 1}, {&last_, 1}}; }
    // A kernel that counts in the buffer's first word.
    void launch(uint32_t gpu, Access access) {
        const memory::Use use{storage_.get(), {0, size}, access};
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
            const CountVisits arguments{addresses[0].value};
            return access == Access::read ? queues_[gpu]->marker({waits})
                                          : queues_[gpu]->launch(launch_of(*kernels_[gpu], arguments), {waits});
        };
        last_ = *domain_->launch(on(gpu), {&use, 1}, submit);
        last_.queue->wait(last_.value);
    }
    void write(uint32_t gpu, uint64_t offset, const uint32_t& value) {
        last_ = *domain_->write(on(gpu), *storage_, memory::StorageRect::of({offset, offset + 4}),
                                reinterpret_cast<const std::byte*>(&value), {});
        last_.queue->wait(last_.value);
    }
    [[nodiscard]] uint32_t read(uint64_t offset) {
        uint32_t value = 0;
        last_ = *domain_->read(on(0), *storage_, memory::StorageRect::of({offset, offset + 4}),
                               reinterpret_cast<std::byte*>(&value), {});
        last_.queue->wait(last_.value);
        return value;
    }
    // Since the last call.
    Moved moved() {
        const Moved all{bytes_("cuMemcpyHtoDAsync_v2"), bytes_("cuMemcpyDtoHAsync_v2"),
                        bytes_("cuMemcpyDtoDAsync_v2") + bytes_("cuMemcpy3DAsync_v2")};
        const Moved since{all.to_gpus - seen_.to_gpus, all.from_gpus - seen_.from_gpus,
                          all.between_gpus - seen_.between_gpus};
        seen_ = all;
        return since;
    }

    fake_cuda::CountBytes bytes_ = nullptr;
    std::unique_ptr<driver::Driver> driver_;
    std::array<std::unique_ptr<driver::Device>, 2> devices_;
    std::array<std::unique_ptr<driver::Queue>, 2> queues_;
    std::array<std::unique_ptr<driver::LoadedKernel>, 2> kernels_;
    std::unique_ptr<memory::Space> host_ = memory::Space::host(nullptr);
    std::array<std::unique_ptr<memory::Space>, 2> spaces_;
    std::unique_ptr<memory::Domain> domain_;
    Ref<memory::Storage> storage_;
    Timepoint last_;
    Moved seen_;
};

TEST_F(TwoGpus, ABufferThatBothChangeInTurnsMovesOverTheirLinkAlone) {
    launch(0, Access::read_write);
    EXPECT_EQ(moved(), (Moved{size, 0, 0}));
    for (uint32_t turn = 1; turn <= 6; ++turn) {
        launch(turn % 2, Access::read_write);
        EXPECT_EQ(moved(), (Moved{0, 0, size}));
    }
    // The same GPU again moves nothing.
    launch(0, Access::read_write);
    EXPECT_EQ(moved(), Moved{});
    EXPECT_EQ(read(0), 8u);
}

TEST_F(TwoGpus, FourBytesThatAreWrittenInTurnsMoveAlone) {
    launch(0, Access::read);
    launch(1, Access::read);
    // The first GPU gets the bytes from the host; the other one from the host or from its peer.
    const Moved first = moved();
    EXPECT_EQ(first.to_gpus + first.between_gpus, 2 * size);
    for (uint32_t turn = 0; turn < 6; ++turn) {
        write(turn % 2, 4096 * turn, turn + 1);
        EXPECT_EQ(moved(), (Moved{4, 0, 0}));
        launch((turn + 1) % 2, Access::read);
        EXPECT_EQ(moved(), (Moved{0, 0, 4}));
        launch(turn % 2, Access::read);
        EXPECT_EQ(moved(), Moved{});
    }
    for (uint32_t turn = 0; turn < 6; ++turn)
        EXPECT_EQ(read(4096 * turn), turn + 1);
}

}  // namespace
}  // namespace polder::conformance
