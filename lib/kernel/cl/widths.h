// Definitions for scalars and all vector widths from one text.
//
// A file that wants its functions for every width defines BODY as the name of an .inc file and includes
// this one; the .inc is read once for each of 1, 2, 3, 4, 8 and 16 elements, with
//   VECTOR(T)       the type of that width            CONVERT(T)(x)    convert_T
//   AS(T)(x)        as_T            ENCODED("d")      the type in a mangled name; AGAIN("d"): repeated there
// Comparisons are used in ?: only, which takes the int of a scalar comparison and the mask of a vector one.
#define JOIN_(A, B) A##B
#define JOIN(A, B) JOIN_(A, B)
#define VECTOR(T) JOIN(T, WIDTH)
#define CONVERT(T) JOIN(convert_##T, WIDTH)
#define AS(T) JOIN(as_##T, WIDTH)

#define ENCODED(LETTER) LETTER
#define AGAIN(LETTER) LETTER
#define WIDTH
#define IS_SCALAR
#include BODY
#undef IS_SCALAR
#undef WIDTH
#undef ENCODED
#undef AGAIN
#define ENCODED(LETTER) "Dv2_" LETTER
#define AGAIN(LETTER) "S_"
#define WIDTH 2
#include BODY
#undef WIDTH
#undef ENCODED
#undef AGAIN
#define ENCODED(LETTER) "Dv3_" LETTER
#define AGAIN(LETTER) "S_"
#define WIDTH 3
#include BODY
#undef WIDTH
#undef ENCODED
#undef AGAIN
#define ENCODED(LETTER) "Dv4_" LETTER
#define AGAIN(LETTER) "S_"
#define WIDTH 4
#include BODY
#undef WIDTH
#undef ENCODED
#undef AGAIN
#define ENCODED(LETTER) "Dv8_" LETTER
#define AGAIN(LETTER) "S_"
#define WIDTH 8
#include BODY
#undef WIDTH
#undef ENCODED
#undef AGAIN
#define ENCODED(LETTER) "Dv16_" LETTER
#define AGAIN(LETTER) "S_"
#define WIDTH 16
#include BODY
#undef WIDTH
#undef ENCODED
#undef AGAIN
