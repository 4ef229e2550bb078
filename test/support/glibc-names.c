/* Symbols that Debian's libstdc++ and libgcc_s expect of glibc and that musl has under other names, or not at all. */

typedef unsigned long size_t;

long getrandom(void *, size_t, unsigned);
size_t strftime_l(char *, size_t, const char *, const void *, void *);

char __libc_single_threaded = 0;
int __cpu_model[4];

int __cpu_indicator_init(void) { return 0; }

/* Destructors of threads that end are not run, which a short command does not miss. */
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library) { return 0; }

/* Nothing was found: no C++ exception can be caught. */
int _dl_find_object(void *address, void *result) { return -1; }

unsigned arc4random(void) {
  unsigned value = 0;
  getrandom(&value, sizeof value, 0);
  return value;
}

size_t __strftime_l(char *text, size_t size, const char *format, const void *time, void *locale) {
  return strftime_l(text, size, format, time, locale);
}
