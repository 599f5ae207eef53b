// The fill of an image. All other commands on images are commands on a rectangle of a buffer (buffer_commands.h).
#pragma once

#include <runtime/command.h>
#include <runtime/mem_object.h>

namespace polder::runtime {

class FillImageCommand final : public Command {
public:
    // `rect` is relative to the storage.
    FillImageCommand(Ref<MemObject> to, const memory::StorageRect& rect, const ImageElement& element)
        : to_(std::move(to)), rect_(rect), element_(element) {}
    Result<void> reserve(const Queue& queue) const override;
    [[nodiscard]] memory::Announcement announce(const Queue& queue) const override;
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        storages.push_back(&to_->storage());
    }
    Ref<const RecordedOperation> record() const override;

private:
    Ref<MemObject> to_;
    memory::StorageRect rect_;
    ImageElement element_;
};

}  // namespace polder::runtime
