#include "mem_properties.h"

#include "entry.h"

namespace polder::api {
namespace {

// Reads the property at `at`. Returns how many elements of the list it has, including its name.
Result<size_t> take_property(MemProperties& properties, const runtime::Context& context, PropertiesOf object,
                             const cl_mem_properties* at) {
    POLDER_ASSIGN(taken, properties.external.take(context, at));
    if (taken > 0)
        return taken;
    // CL_INVALID_PROPERTY: the property is unknown, or it is a property of buffers and the object is an image.
    if (object != PropertiesOf::buffer || at[0] != CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT)
        return fail(Status::invalid_property);
    // CL_INVALID_PROPERTY: the property is listed twice, or its value is neither CL_TRUE nor CL_FALSE.
    if (properties.wants_addresses || (at[1] != CL_TRUE && at[1] != CL_FALSE))
        return fail(Status::invalid_property);
    properties.wants_addresses = at[1] == CL_TRUE;
    return size_t{2};
}

} // namespace

Result<MemProperties> check_mem_properties(const runtime::Context& context, PropertiesOf object,
                                           const cl_mem_properties* list) {
    MemProperties properties;
    if (!list)
        return properties;
    const cl_mem_properties* at = list;
    while (*at != 0) {
        POLDER_ASSIGN(taken, take_property(properties, context, object, at));
        at += taken;
    }
    POLDER_TRY(properties.external.check_complete());
    properties.list.assign(list, at + 1);
    return properties;
}

} // namespace polder::api
