/* The list of catalogue files; the registry and every site include them through catalogue.h. */
#pragma once
