// Watchers run the completion callbacks of events: one thread per driver queue that has any, so that
// a driver never calls back and one queue's slow command does not delay another's callbacks.
//
// Started at first use and never stopped: a callback may come at any time until the process ends.
#pragma once

#include <base/ref.h>

namespace polder::runtime {

class Event;

// Runs event->run_completion_callbacks() once the event's timepoint is complete. The event is submitted.
void watch(Ref<Event> event);

// Calls memory::collect() until every storage that is gone by now has told so, from a thread of its own when
// devices still work on one.
void watch_destructions();

} // namespace polder::runtime
