# find_package(lapax) makes the target lapax::lapax; cmake -Dlapax_DIR=$(python -m lapax paths --cmake)

get_filename_component(_lapax "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
set(_lapax_library "${_lapax}/_native/lapax/liblapax${CMAKE_SHARED_LIBRARY_SUFFIX}")
if(NOT EXISTS "${_lapax_library}")
  set(lapax_FOUND FALSE)
  set(lapax_NOT_FOUND_MESSAGE "there is no ${_lapax_library} to link with")
  return()
endif()

if(NOT TARGET lapax::lapax)
  add_library(lapax::lapax SHARED IMPORTED)
  set_target_properties(lapax::lapax PROPERTIES
    IMPORTED_LOCATION "${_lapax_library}"
    IMPORTED_SONAME "liblapax${CMAKE_SHARED_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_lapax}/include")
endif()
unset(_lapax)
unset(_lapax_library)
