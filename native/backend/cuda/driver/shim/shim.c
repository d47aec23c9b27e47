/*
 * A libcuda of our own, linked statically: every function opens the real
 * driver when the first of them is needed, and forwards. A program linked
 * with it therefore starts on a machine without a driver, where a program
 * linked against the driver itself does not.
 *
 * cuInit always answers success, because the Go binding calls it when it is
 * imported and ends the process on any other answer. The driver is really
 * initialised at the next call. Without one, there are 0 devices, and
 * tideline_driver_problem says why.
 *
 * TIDELINE_CUDA_DRIVER in the environment names another library to open: the
 * fake driver, or a driver in an unusual place.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *library;
static CUresult opened;
static char problem[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const names[] = {
#ifdef _WIN32
	"nvcuda.dll",
#else
	"libcuda.so.1", "libcuda.so",
#endif
};

static void open_driver(void)
{
	const char *asked = getenv("TIDELINE_CUDA_DRIVER");
	CUresult (*init)(unsigned int);
	size_t i;

	opened = CUDA_ERROR_NO_DEVICE;
	if (asked && *asked) {
		library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			snprintf(problem, sizeof problem, "TIDELINE_CUDA_DRIVER: %s", dlerror());
			return;
		}
	}
	for (i = 0; !library && i < sizeof names / sizeof names[0]; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(problem, sizeof problem, "no NVIDIA driver on this machine (%s)", dlerror());
		return;
	}
	*(void **)&init = dlsym(library, "cuInit");
	if (!init) {
		snprintf(problem, sizeof problem, "the driver library has no cuInit");
		return;
	}
	opened = init(0);
	if (opened != CUDA_SUCCESS) {
		CUresult (*text)(CUresult, const char **);
		const char *words = NULL;

		*(void **)&text = dlsym(library, "cuGetErrorString");
		if (text && text(opened, &words) != CUDA_SUCCESS)
			words = NULL;
		snprintf(problem, sizeof problem, "the driver does not start: error %d%s%s", (int)opened,
			 words ? ", " : "", words ? words : "");
	}
}

/* Why there is no driver; empty when there is one. */
const char *tideline_driver_problem(void)
{
	pthread_once(&once, open_driver);
	return problem;
}

/* The address of a function of the driver, or NULL with the error to answer. */
static void *find(const char *name, void **cache, CUresult *answer)
{
	void *f = __atomic_load_n(cache, __ATOMIC_ACQUIRE);

	if (f)
		return f;
	pthread_once(&once, open_driver);
	if (opened != CUDA_SUCCESS) {
		*answer = opened;
		return NULL;
	}
	f = dlsym(library, name);
	if (!f)
		*answer = CUDA_ERROR_NOT_SUPPORTED;
	__atomic_store_n(cache, f, __ATOMIC_RELEASE);
	return f;
}

#define TIDELINE_FUNCTION(name, types, params, pass)                        \
	CUresult name params                                                \
	{                                                                   \
		static void *cache;                                         \
		CUresult answer = CUDA_ERROR_NOT_SUPPORTED;                 \
		CUresult(*target) types;                                    \
                                                                            \
		*(void **)&target = find(#name, &cache, &answer);           \
		return target ? target pass : answer;                       \
	}
#include "functions.def"
#undef TIDELINE_FUNCTION

CUresult cuInit(unsigned int flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

static CUresult ask_number(const char *name, void **cache, int *n)
{
	CUresult answer = CUDA_ERROR_NOT_SUPPORTED;
	CUresult (*f)(int *);

	*n = 0;
	*(void **)&f = find(name, cache, &answer);
	return f ? f(n) : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
	static void *cache;

	return ask_number("cuDeviceGetCount", &cache, n);
}

CUresult cuDriverGetVersion(int *version)
{
	static void *cache;

	return ask_number("cuDriverGetVersion", &cache, version);
}
