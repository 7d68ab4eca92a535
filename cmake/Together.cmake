# Compiles several files of one folder as one translation unit: they share headers and templates, and a build from
# nothing takes about half the time (seven files of report: 11.9 s instead of 21.6 s).
# -DREVISIT_TOGETHER=OFF compiles each file by itself, which is quicker when one of them is changed.
option(REVISIT_TOGETHER "compile files of a folder together" ON)

# revisit_together(TARGET FOLDER…): files of TARGET under these folders of the current one, at most six in a unit.
# The folders with inner loops are left out: what the compiler inlines there should not depend on its neighbours.
# The units name their files relative to src/ (CMake's own UNITY_BUILD writes whole paths), so that ccache knows them
# again in another checkout.
function(revisit_together target)
  if(NOT REVISIT_TOGETHER)
    return()
  endif()
  get_target_property(files ${target} SOURCES)
  list(SORT files)
  set(in_unit 0)
  set(units "")
  set(last "none yet")
  foreach(file IN LISTS files)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src OUTPUT_VARIABLE included)
    cmake_path(GET relative PARENT_PATH folder)
    foreach(wanted IN LISTS ARGN)
      if((wanted STREQUAL "." OR relative MATCHES "^${wanted}/") AND relative MATCHES "^[a-z].*\\.cpp$")
        if(NOT folder STREQUAL last OR in_unit EQUAL 6)
          set(in_unit 0)
          set(last "${folder}")
          string(MAKE_C_IDENTIFIER "${included}" unit)
          list(APPEND units ${unit})
          set(text_of_${unit} "")
        endif()
        math(EXPR in_unit "${in_unit} + 1")
        string(APPEND text_of_${unit} "#include \"${included}\"\n")
        set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
        break()
      endif()
    endforeach()
  endforeach()
  foreach(unit IN LISTS units)
    set(path ${CMAKE_CURRENT_BINARY_DIR}/${target}.together/${unit}.cpp)
    file(CONFIGURE OUTPUT ${path} CONTENT "${text_of_${unit}}" @ONLY)
    target_sources(${target} PRIVATE ${path})
  endforeach()
  # gcc takes a file that is included for a header, whose unnamed namespaces differ in every file that includes it.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
