# rondo_layer(NAME LINK libraries...)
# One layer of src/ is one static library `rondo_NAME` of every x.cc below src/NAME, and one test
# program `rondo_NAME_test` of every x_test.cc there. New files are picked up by the next build.
function(rondo_layer name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  add_library(rondo_${name} STATIC ${sources})
  target_include_directories(rondo_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(rondo_${name} PUBLIC ${ARG_LINK})
  if(RONDO_TESTS AND tests)
    rondo_test(rondo_${name}_test ${tests})
    target_link_libraries(rondo_${name}_test PRIVATE rondo_${name})
  endif()
endfunction()

# rondo_test(TARGET sources...): a GoogleTest program whose tests ctest knows one by one, each labelled
# with the name of the program.
function(rondo_test target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE RONDO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300
                       LABELS ${target})
endfunction()
