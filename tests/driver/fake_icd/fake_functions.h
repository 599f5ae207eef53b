// How the sources of the fake ICD fill the table of functions.
#pragma once

#include "fake_objects.h"

#include <exception>
#include <tuple>

// A function of the table that fails with CL_OUT_OF_HOST_MEMORY where it throws. Functions that return a handle have the place of
// their code as the last argument.
template <auto function>
struct Guarded;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Guarded<function> {
    static Result CL_API_CALL call(Arguments... arguments) {
        try {
            return function(arguments...);
        } catch (const std::exception&) {
            if constexpr (std::is_same_v<Result, cl_int>) {
                return CL_OUT_OF_HOST_MEMORY;
            } else {
                *std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)) = CL_OUT_OF_HOST_MEMORY;
                return nullptr;
            }
        }
    }
};
template <auto function>
inline constexpr auto guarded = &Guarded<function>::call;

struct WaitList {
    cl_uint count;
    const cl_event* events;
    cl_event* done;
};
// Adds a command to the queue's.
[[nodiscard]] cl_int enqueue(cl_command_queue queue, const WaitList& list, std::function<void()> work,
                             bool is_blocking = false);

void add_program_functions(cl_icd_dispatch& table);
void add_command_functions(cl_icd_dispatch& table);
void add_image_functions(cl_icd_dispatch& table);
