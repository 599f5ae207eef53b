// Rare: owns an object that few of its owner's kind have, such as a member that is made when it is first needed.
//
// A std::unique_ptr whose deletion is not inlined: the owner's destructor then consists of one test for each of these members, and needs no
// registers for their destructors. Not thread-safe.
#pragma once

#include <memory>

namespace polder {

template <class T>
struct DeleteRare {
    [[gnu::noinline, gnu::cold]] void operator()(T* object) const noexcept { delete object; }
};

template <class T>
using Rare = std::unique_ptr<T, DeleteRare<T>>;

}  // namespace polder
