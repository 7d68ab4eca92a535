// fmt within the module, where the distribution has no archive of it (Debian has none): compiled from
// its headers, all of its functions kept (-fkeep-inline-functions), so that a wheel needs no libfmt.
#define FMT_HEADER_ONLY 1
#include <fmt/format-inl.h>
#include <fmt/format.h>

template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                      fmt::detail::locale_ref);
