/* The most multiply-adds that one core does, and its clock; WIDTH is the size of a vector in bytes. */

typedef double vector __attribute__((vector_size(WIDTH)));

#define CHAINS 12 /* more than latency times units of any core we know, and few enough for 16 registers */

/* Each round does CHAINS * WIDTH / 8 multiply-adds. */
double multiply_add(long rounds, double factor, double term) {
    vector chain[CHAINS], sum = {0.0};
    for (int i = 0; i < CHAINS; i++) chain[i] = (vector){0.0} + i;
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * factor + term;
    for (int i = 0; i < CHAINS; i++) sum += chain[i];
    double total = 0.0;
    for (int i = 0; i < WIDTH / 8; i++) total += sum[i];
    return total;
}

/* A chain of 8 integer products a round, of three cycles each on every x86-64 core of the last ten years. */
long products(long rounds) {
    long value = 3;
#ifdef __x86_64__
    for (long round = 0; round < rounds; round++)
        __asm__ volatile("imul %0,%0\n imul %0,%0\n imul %0,%0\n imul %0,%0\n"
                         "imul %0,%0\n imul %0,%0\n imul %0,%0\n imul %0,%0" : "+r"(value));
#endif
    return value;
}
