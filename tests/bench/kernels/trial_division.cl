// Remainders by a divisor that all work-items share in a round, and by one of their own.
kernel void trial_division(global uint* prime, uint first) {
    const uint number = first + 2 * get_global_id(0);
    uint is_prime = 1;
    for (uint divisor = 3; divisor * divisor <= number; divisor += 2)
        if (number % divisor == 0) {
            is_prime = 0;
            break;
        }
    prime[get_global_id(0)] = is_prime;
}

kernel void common_divisors(global const uint* a, global const uint* b, global uint* divisor) {
    uint x = a[get_global_id(0)], y = b[get_global_id(0)];
    while (y != 0) {
        const uint rest = x % y;
        x = y;
        y = rest;
    }
    divisor[get_global_id(0)] = x;
}
