/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * The names under which libsisci.so also exports the API, for programs that look them up at run
 * time: dlsym(library, "_SISCI_PUBLIC_FUNC_ST_SCIOpen"). Both threading variants are one function;
 * constants are objects of type const unsigned int.
 */
#ifndef SISCI_API_MACROS_H
#define SISCI_API_MACROS_H

#ifdef _REENTRANT
#define _SISCI_EXPANDE_FUNCTION_NAME(name) _SISCI_PUBLIC_FUNC_MT_##name
#define _SISCI_EXPANDE_VARIABLE_NAME(name) _SISCI_PUBLIC_VAR_MT_##name
#else
#define _SISCI_EXPANDE_FUNCTION_NAME(name) _SISCI_PUBLIC_FUNC_ST_##name
#define _SISCI_EXPANDE_VARIABLE_NAME(name) _SISCI_PUBLIC_VAR_ST_##name
#endif
#define _SISCI_EXPANDE_CONSTANT_NAME(name) _SISCI_PUBLIC_CONST_##name

#endif
