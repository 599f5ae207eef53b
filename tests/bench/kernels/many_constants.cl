// A block of 2,000 statements with constants of their own: more than there are registers.
#define STATEMENT(k) \
    x = y * (0.31f + k * 1.7e-5f) + z * (0.17f + k * 2.3e-5f); \
    y = z * (0.23f + k * 3.1e-5f) + x * (0.29f + k * 1.1e-5f);
#define TEN(k) \
    STATEMENT(k) STATEMENT(k + 1) STATEMENT(k + 2) STATEMENT(k + 3) STATEMENT(k + 4) \
    STATEMENT(k + 5) STATEMENT(k + 6) STATEMENT(k + 7) STATEMENT(k + 8) STATEMENT(k + 9) z = x - y * 0.5f;
#define HUNDRED(k) \
    TEN(k) TEN(k + 10) TEN(k + 20) TEN(k + 30) TEN(k + 40) TEN(k + 50) TEN(k + 60) TEN(k + 70) TEN(k + 80) TEN(k + 90)

kernel void many_constants(global const float* a, global float* o) {
    int id = get_global_id(0);
    float x = a[id], y = a[id + 1], z = a[id + 2];
    HUNDRED(0) HUNDRED(100) HUNDRED(200) HUNDRED(300) HUNDRED(400)
    HUNDRED(500) HUNDRED(600) HUNDRED(700) HUNDRED(800) HUNDRED(900)
    o[id] = x + y + z;
}
