// FunctionRef: a reference to a callable, for a parameter that is called before the function returns. Nothing is copied or
// allocated.
//
//   void visit(FunctionRef<void(int)> f);
//   visit([&](int value) { sum += value; });
//
// It refers to the callable, which must outlive it. Two pointers, passed by value.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace polder {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                 std::is_invocable_r_v<Result, F&, Arguments...>)
    FunctionRef(F&& function)  // implicit, so that a lambda can be passed as it is
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
          call_([](void* object, Arguments... arguments) -> Result {
              return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Arguments>(arguments)...);
          }) {}

    Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

private:
    void* object_;
    Result (*call_)(void* object, Arguments... arguments);
};

}  // namespace polder
