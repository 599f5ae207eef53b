// Creation of buffers, sub-buffers and pipes, fixed device addresses, destructor callbacks, and the list of maps.
#include <runtime/mem_object.h>
#include <runtime/svm.h>

#include <algorithm>
#include <cstring>
#include <polder/pipe_abi.h>

namespace polder::runtime {
namespace {

// The range [begin, end) of a map in one dimension.
struct Span {
    uint64_t begin;
    uint64_t size;
    [[nodiscard]] bool overlaps(const Span& other) const {
        return begin < other.begin + other.size && other.begin < begin + size;
    }
};

// Whether two maps of one object share bytes. Their pitches are equal; maps of buffers are one row.
bool overlap(const memory::StorageRect& a, const memory::StorageRect& b, uint64_t object_begin) {
    const auto part = [&](const memory::StorageRect& rect, size_t dimension) -> Span {
        const uint64_t offset = rect.offset - object_begin;
        const driver::RectLayout& pitch = rect.layout;
        if (pitch.slice_pitch == 0)
            return dimension == 0 ? Span{offset, rect.shape.row_bytes} : Span{0, 1};
        switch (dimension) {
        case 0: return {offset % pitch.slice_pitch % pitch.row_pitch, rect.shape.row_bytes};
        case 1: return {offset % pitch.slice_pitch / pitch.row_pitch, rect.shape.rows};
        default: return {offset / pitch.slice_pitch, rect.shape.slices};
        }
    };
    return part(a, 0).overlaps(part(b, 0)) && part(a, 1).overlaps(part(b, 1)) && part(a, 2).overlaps(part(b, 2));
}

} // namespace

// The application's destructor callbacks of one memory object. The object makes it with the first callback and gives
// it to the completion callback that calls them.
struct MemObject::Destruction final : Retried {
    Ref<memory::Storage> storage;  // set while registering the callbacks with the storage has to be tried again
    ByteRange range;
    cl_mem object = nullptr;
    std::vector<std::pair<Destructor, void*>> callbacks;  // in order of registration
    Ref<ExternalMemory> external;                         // unmapped after the callbacks
    Ref<MemObject> parent;                                // a parent's callbacks come after those of its sub-buffers

    bool try_again() noexcept override {
        if (!storage->is_idle(range))
            return false;
        run(this);
        return true;
    }
    static void run(void* data) {
        const std::unique_ptr<Destruction> self(static_cast<Destruction*>(data));
        // Calls the callback that was registered last first, as the specification says.
        for (auto callback = self->callbacks.rbegin(); callback != self->callbacks.rend(); ++callback)
            callback->first(self->object, callback->second);
    }
};

MemObject::MemObject(Ref<Context>&& context, Ref<MemObject>&& parent, Ref<memory::Storage>&& storage,
                     cl_mem_flags flags, ByteRange range, void* host_pointer,
                     std::vector<cl_mem_properties>&& properties)
    : context_(std::move(context)), parent_(std::move(parent)), storage_(std::move(storage)), flags_(flags),
      range_(range), host_pointer_(host_pointer), properties_(std::move(properties)) {}

Result<Ref<MemObject>> MemObject::create_buffer(Ref<Context> context, cl_mem_flags flags, uint64_t size,
                                                void* host_pointer, std::vector<cl_mem_properties>&& properties) {
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
    const ByteRange in_storage = ByteRange::at(parent->range_.begin + range.begin, ByteCount{range.size()});
    return Ref<MemObject>::adopt(
        new MemObject(std::move(context), std::move(parent), std::move(storage), flags, in_storage, host_pointer, {}));
}

Ref<MemObject> MemObject::create_view(Ref<Context> context, Ref<memory::Storage> storage, cl_mem_flags flags,
                                      ByteRange range, void* host_pointer, std::vector<cl_mem_properties> properties) {
    auto view = Ref<MemObject>::adopt(new MemObject(std::move(context), nullptr, std::move(storage), flags, range,
                                                    host_pointer, std::move(properties)));
    view->is_view_ = true;
    return view;
}

// The addresses of a buffer on the devices. Its allocations are in the context's address map, unless another allocation covers their bytes.
struct MemObject::FixedAddresses {
    std::vector<uint64_t> by_device;
    std::vector<Ref<const Allocation>> allocations;
};

Result<void> MemObject::fix_addresses() {
    fixed_.reset(new FixedAddresses);
    SpaceSet done;
    for (const Ref<Device>& device : context_->devices()) {
        const SpaceId space = device->space_id();
        POLDER_ASSIGN(base, context_->domain().pin(*storage_, space, memory::Domain::Contents::unwritten));
        const uint64_t address = address_for_kernels(*context_, space, base);
        fixed_->by_device.push_back(address + range_.begin);
        if (done.contains(space))
            continue;
        done.insert(space);
        const Allocation::Description description{
            .kind = Allocation::Kind::buffer, .address = address, .size = storage_->size().value, .space = space};
        auto allocation = Ref<const Allocation>::adopt(new Allocation(description, storage_));
        fixed_->allocations.reserve(fixed_->allocations.size() + 1);
        if (context_->addresses().insert(allocation))
            fixed_->allocations.push_back(std::move(allocation));
    }
    return {};
}

std::vector<uint64_t> MemObject::device_addresses() const {
    if (fixed_)
        return fixed_->by_device;
    std::vector<uint64_t> addresses = parent_ ? parent_->device_addresses() : std::vector<uint64_t>{};
    for (uint64_t& address : addresses)
        address += offset_in_parent();
    return addresses;
}

// Arguments of kernels may still refer to the allocations, so the allocations release the storage here.
void MemObject::forget_addresses() noexcept {
    for (const Ref<const Allocation>& allocation : fixed_->allocations) {
        static_cast<void>(context_->addresses().remove(allocation->address()));
        static_cast<void>(allocation->take_storage());
    }
}

Result<Ref<MemObject>> MemObject::create_image(Ref<Context> context, Ref<MemObject> source, cl_mem_flags flags,
                                               const ImageShape& shape, void* host_pointer,
                                               std::vector<cl_mem_properties> properties) {
    const uint64_t size = shape.size();
    Ref<MemObject> image;
    if (source) {
        auto storage = source->storage_;
        const ByteRange range = ByteRange::at(source->range_.begin, ByteCount{size});
        void* const kept_pointer = source->host_pointer_;
        image = Ref<MemObject>::adopt(new MemObject(std::move(context), std::move(source), std::move(storage), flags,
                                                    range, kept_pointer, std::move(properties)));
    } else {
        POLDER_ASSIGN(made, create_buffer(std::move(context), flags, size, host_pointer, std::move(properties)));
        image = std::move(made);
    }
    image->image_.reset(new ImageShape(shape));
    return image;
}

Result<Ref<MemObject>> MemObject::create_external(Ref<Context> context, Ref<ExternalMemory> memory, cl_mem_flags flags,
                                                  uint64_t size, std::vector<cl_mem_properties> properties) {
    POLDER_TRY(start_callback_thread());
    auto destruction = std::make_unique<Destruction>();
    memory::StorageOptions options;
    options.application_memory = memory->bytes();
    POLDER_ASSIGN(storage, memory::Storage::create(context->domain(), ByteCount{size}, options));
    auto object = Ref<MemObject>::adopt(new MemObject(std::move(context), nullptr, std::move(storage), flags,
                                                      ByteRange{0, size}, nullptr, std::move(properties)));
    destruction->external = memory;
    object->external_ = std::move(memory);
    Lock lock(object->mutex_);
    object->destruction_ = std::move(destruction);
    return object;
}

Result<Ref<MemObject>> MemObject::create_external_image(Ref<Context> context, Ref<ExternalMemory> memory,
                                                        cl_mem_flags flags, const ImageShape& shape,
                                                        std::vector<cl_mem_properties> properties) {
    POLDER_ASSIGN(image,
                  create_external(std::move(context), std::move(memory), flags, shape.size(), std::move(properties)));
    image->image_.reset(new ImageShape(shape));
    return image;
}

Result<Ref<MemObject>> MemObject::create_pipe(Ref<Context> context, cl_mem_flags flags, const PipeShape& shape,
                                              std::vector<cl_mem_properties> properties) {
    const PipeHeader header{shape.packet_bytes, shape.packets_max, 0, 0};
    const uint64_t turns_bytes = header.packets_max * sizeof(uint64_t);
    std::vector<std::byte> bytes(sizeof header + turns_bytes + header.packets_max * header.packet_bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (uint64_t place = 0; place < header.packets_max; ++place) {
        const uint64_t turn = place * 2;
        std::memcpy(&bytes[sizeof header + place * sizeof turn], &turn, sizeof turn);
    }
    memory::StorageOptions options;
    options.initial_contents = bytes.data();
    POLDER_ASSIGN(storage, memory::Storage::create(context->domain(), ByteCount{bytes.size()}, options));
    auto pipe = Ref<MemObject>::adopt(new MemObject(std::move(context), nullptr, std::move(storage), flags,
                                                    ByteRange{0, bytes.size()}, nullptr, std::move(properties)));
    pipe->pipe_ = shape;
    return pipe;
}

MemObject::~MemObject() {
    if (fixed_) [[unlikely]]
        forget_addresses();
    if (!destruction_) [[likely]]
        return;
    Destruction* const destruction = destruction_.release();
    destruction->object = static_cast<cl_mem>(handle());
    const CompletionCallback callback{Destruction::run, destruction};
    if (parent_ || is_view_) {  // the storage outlives this object
        destruction->parent = std::move(parent_);
        if (storage_->run_when_idle(range_, callback))
            return;
        destruction->storage = storage_;
        destruction->range = range_;
        retry_until_done(*destruction);
    } else {
        storage_->on_destroyed(callback);
    }
}

Result<void> MemObject::add_destructor(Destructor function, void* user) {
    POLDER_TRY(start_callback_thread());
    Lock lock(mutex_);
    if (!destruction_)
        destruction_ = std::make_unique<Destruction>();
    destruction_->callbacks.emplace_back(function, user);
    return {};
}

Result<Ref<MapRecord>> MemObject::add_map(std::byte* pointer, const memory::StorageRect& rect, memory::MapAccess access,
                                          memory::MapPin pin) {
    auto record = make_ref<MapRecord>(pointer, rect, access, std::move(pin));
    Lock lock(mutex_);
    const bool writes = access != memory::MapAccess::read;
    if (writes &&
        maps_.any_of([&](const MapRecord& other) { return other.writes() && overlap(rect, other.rect, range_.begin); }))
        return fail(Status::invalid_operation);
    maps_.add(record);
    return record;
}

void MemObject::cancel_map(MapRecord& record) {
    Lock lock(mutex_);
    record.has_failed_.store(true, std::memory_order_release);
    maps_.remove(record);
}

void MemObject::return_map(Ref<MapRecord> record) {
    Lock lock(mutex_);
    maps_.put_back(std::move(record));
}

Ref<MapRecord> MemObject::take_map(const void* pointer) {
    Lock lock(mutex_);
    return maps_.take(pointer);
}

uint32_t MemObject::map_count() const {
    Lock lock(mutex_);
    return static_cast<uint32_t>(maps_.size());
}

}  // namespace polder::runtime
