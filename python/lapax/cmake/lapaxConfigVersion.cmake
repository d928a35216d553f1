# Until 1.0 a minor version may change what is declared.
set(PACKAGE_VERSION "0.1.0")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _lapax_series "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION
    AND PACKAGE_FIND_VERSION MATCHES "^${_lapax_series}(\\.|$)")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
unset(_lapax_series)
