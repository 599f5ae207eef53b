// ThreadFreeList: per-thread free list, at most 32 pieces; no atomics. A push and a pop are two loads and two stores and
// touch no memory of another thread. When the list is full, further pieces go to the source that all threads share.
//
//   struct Pieces {
//       using Link = ...;                            names a piece; Link{} names none
//       static Link next(Link piece);                what `set_next` has stored in a piece that is not in use
//       static void set_next(Link piece, Link next);
//       static void give_back(Link piece);           frees the piece to the shared source
//   };
//
// There is one list for each type `Pieces` and thread. It has at most `count_max` pieces, and gives all of them back when the
// thread ends. So pieces do not accumulate when one thread allocates them and another one frees them.
#pragma once

#include <cstdint>

namespace polder {

template <class Pieces>
class ThreadFreeList {
public:
    using Link = Pieces::Link;
    static constexpr uint32_t count_max = 32;

    // Link{} when the calling thread's list is empty.
    static Link pop() {
        const Link piece = list_.head;
        if (piece != Link{}) {
            list_.head = Pieces::next(piece);
            --list_.count;
        }
        return piece;
    }

    static void push(Link piece) {
        if (list_.count == list_.room) [[unlikely]] {
            overflow(piece);
            return;
        }
        keep(piece);
    }

private:
    // Has no destructor, so that destructors of other thread-local objects may still use it when the thread ends.
    struct List {
        Link head{};
        uint32_t count = 0;
        uint32_t room = 0;  // the most pieces that it may have now: 0 before the first piece and when the thread ends
        bool seen = false;
    };
    struct EndOfThread {
        ~EndOfThread() {
            list_.room = 0;
            for (Link piece = pop(); piece != Link{}; piece = pop())
                Pieces::give_back(piece);
        }
    };

    static void keep(Link piece) {
        Pieces::set_next(piece, list_.head);
        list_.head = piece;
        ++list_.count;
    }
    // The list has no room: it is full, or this is the thread's first piece, or the thread ends.
    [[gnu::noinline]] static void overflow(Link piece) {
        if (list_.seen) {
            Pieces::give_back(piece);
            return;
        }
        thread_local const EndOfThread at_exit;
        list_.seen = true;
        list_.room = count_max;
        keep(piece);
    }

    [[gnu::tls_model("initial-exec")]] static inline constinit thread_local List list_{};
};

}  // namespace polder
