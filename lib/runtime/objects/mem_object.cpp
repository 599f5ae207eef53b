#include <memory/collect.h>
#include <runtime/mem_object.h>
#include <runtime/watcher.h>

#include <algorithm>

namespace polder::runtime {
namespace {

struct Destruction {
    cl_mem object;
    std::vector<std::pair<MemObject::Destructor, void*>> callbacks;  // in order of registration

    static void run(void* data) {
        const std::unique_ptr<Destruction> self(static_cast<Destruction*>(data));
        // Last registered first, as the specification says.
        for (auto callback = self->callbacks.rbegin(); callback != self->callbacks.rend(); ++callback)
            callback->first(self->object, callback->second);
    }
};

// Maps of buffers are one row.
ByteRange bytes_of(const memory::StorageRect& rect) {
    return ByteRange::at(rect.offset, ByteCount{rect.shape.row_bytes});
}

bool write_the_same(const MemObject::Map& a, const MemObject::Map& b) {
    return a.access != memory::MapAccess::read && b.access != memory::MapAccess::read &&
           bytes_of(a.rect).overlaps(bytes_of(b.rect));
}

} // namespace

MemObject::MemObject(Ref<Context> context, Ref<MemObject> parent, Ref<memory::Storage> storage, cl_mem_flags flags,
                     ByteRange range, void* host_pointer, std::vector<cl_mem_properties> properties)
    : context_(std::move(context)), parent_(std::move(parent)), storage_(std::move(storage)), flags_(flags),
      range_(range), host_pointer_(host_pointer), properties_(std::move(properties)) {}

Result<Ref<MemObject>> MemObject::create_buffer(Ref<Context> context, cl_mem_flags flags, uint64_t size,
                                                void* host_pointer, std::vector<cl_mem_properties> properties) {
    memory::StorageOptions options;
    if (flags & CL_MEM_USE_HOST_PTR)
        options.application_memory = static_cast<std::byte*>(host_pointer);
    else if (flags & CL_MEM_COPY_HOST_PTR)
        options.initial_contents = static_cast<const std::byte*>(host_pointer);
    POLDER_ASSIGN(storage, memory::Storage::create(context->domain(), ByteCount{size}, options));
    void* const kept_pointer = flags & CL_MEM_USE_HOST_PTR ? host_pointer : nullptr;
    return Ref<MemObject>::adopt(new MemObject(std::move(context), nullptr, std::move(storage), flags,
                                               ByteRange{0, size}, kept_pointer, std::move(properties)));
}

Result<Ref<MemObject>> MemObject::create_sub_buffer(Ref<MemObject> parent, cl_mem_flags flags, ByteRange range) {
    void* host_pointer = parent->host_pointer_ ? static_cast<std::byte*>(parent->host_pointer_) + range.begin : nullptr;
    auto context = parent->context_;
    auto storage = parent->storage_;
    return Ref<MemObject>::adopt(
        new MemObject(std::move(context), std::move(parent), std::move(storage), flags, range, host_pointer, {}));
}

MemObject::~MemObject() {
    if (destructors_.empty())
        return;
    auto destruction = std::make_unique<Destruction>();
    destruction->object = static_cast<cl_mem>(handle());
    for (const DestructorCallback& callback : destructors_)
        destruction->callbacks.emplace_back(callback.function, callback.user);
    if (parent_) {  // the bytes live on in the parent
        Destruction::run(destruction.release());
        return;
    }
    storage_->on_destroyed(Destruction::run, destruction.release());
    storage_ = nullptr;
    watch_destructions();
}

void MemObject::add_destructor(Destructor function, void* user) {
    Lock lock(mutex_);
    destructors_.push_back({function, user});
}

Result<void> MemObject::add_map(const Map& map) {
    Lock lock(mutex_);
    if (std::ranges::any_of(maps_, [&](const Map& other) { return write_the_same(map, other); }))
        return fail(Status::invalid_operation);
    maps_.push_back(map);
    return {};
}

void MemObject::return_map(const Map& map) {
    Lock lock(mutex_);
    maps_.push_back(map);
}

std::optional<MemObject::Map> MemObject::take_map(const void* pointer) {
    Lock lock(mutex_);
    const auto found =
        std::find_if(maps_.rbegin(), maps_.rend(), [&](const Map& map) { return map.pointer == pointer; });
    if (found == maps_.rend())
        return std::nullopt;
    const Map map = *found;
    maps_.erase(std::next(found).base());
    return map;
}

uint32_t MemObject::map_count() const {
    Lock lock(mutex_);
    return static_cast<uint32_t>(maps_.size());
}

} // namespace polder::runtime
