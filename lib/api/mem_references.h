// References to the objects of commands.
#pragma once

#include <base/kept.h>
#include <base/ref.h>
#include <runtime/mem_object.h>

namespace polder::api {

[[nodiscard]] inline Ref<runtime::MemObject> share(runtime::MemObject* object) {
    return Ref<runtime::MemObject>::share(object);
}
// For commands that keep the object only when they are not complete at once.
[[nodiscard]] inline Kept<runtime::MemObject> borrow(runtime::MemObject* object) {
    return Kept<runtime::MemObject>::borrow(*object);
}

}  // namespace polder::api
