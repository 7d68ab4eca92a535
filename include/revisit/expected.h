// A value or the reason why there is none: std::expected for programs of C++20.
//
// The library and the programs that use it must mean one type by it, whatever standard each is compiled
// for, so it is this one in C++23 too. What it has behaves as in the standard; what is missing are the
// chains (and_then and the like). It never throws, except for value() on an error.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#if defined(__cpp_lib_expected) || (__cplusplus > 202002L && __has_include(<expected>))
#include <expected>
#endif

namespace revisit {

template <class E>
class unexpected {
 public:
    explicit unexpected(E error) : error_(std::move(error)) {}
    const E& error() const& { return error_; }
    E& error() & { return error_; }
    E&& error() && { return std::move(error_); }

 private:
    E error_;
};

template <class T, class E>
class expected;

namespace detail {

template <class T>
inline constexpr bool is_expected = false;
template <class T, class E>
inline constexpr bool is_expected<expected<T, E>> = true;

// What an error may come as: ours, and in C++23 the standard's too.
template <class T>
inline constexpr bool is_unexpected = false;
template <class E>
inline constexpr bool is_unexpected<unexpected<E>> = true;
#ifdef __cpp_lib_expected
template <class E>
inline constexpr bool is_unexpected<std::unexpected<E>> = true;
#endif

[[noreturn]] inline void no_value() {
    throw std::logic_error("revisit: value() of a result that is an error");
}

}  // namespace detail

template <class T, class E>
class [[nodiscard]] expected {
    template <class U>
    static constexpr bool is_value =
        !detail::is_expected<std::remove_cvref_t<U>> &&
        !detail::is_unexpected<std::remove_cvref_t<U>> && std::is_constructible_v<T, U>;

 public:
    using value_type = T;
    using error_type = E;

    expected()
        requires std::is_default_constructible_v<T>
        : held_(std::in_place_index<0>) {}
    template <class U = T>
        requires is_value<U>
    explicit(!std::is_convertible_v<U, T>) expected(U&& value)
        : held_(std::in_place_index<0>, std::forward<U>(value)) {}
    template <class U>
        requires detail::is_unexpected<std::remove_cvref_t<U>>
    expected(U&& failure) : held_(std::in_place_index<1>, std::forward<U>(failure).error()) {}
    // A result of something that turns into a T, such as the pointer to a derived class.
    template <class U>
        requires(!std::is_same_v<U, T> && !std::is_void_v<U> && std::is_convertible_v<U, T>)
    expected(expected<U, E> other)
        : held_(other ? Held(std::in_place_index<0>, std::move(*other))
                      : Held(std::in_place_index<1>, std::move(other).error())) {}

    bool has_value() const noexcept { return held_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    // Only where there is a value.
    T& operator*() & noexcept { return *std::get_if<0>(&held_); }
    const T& operator*() const& noexcept { return *std::get_if<0>(&held_); }
    T&& operator*() && noexcept { return std::move(*std::get_if<0>(&held_)); }
    T* operator->() noexcept { return std::get_if<0>(&held_); }
    const T* operator->() const noexcept { return std::get_if<0>(&held_); }
    // Only where there is none.
    E& error() & noexcept { return *std::get_if<1>(&held_); }
    const E& error() const& noexcept { return *std::get_if<1>(&held_); }
    E&& error() && noexcept { return std::move(*std::get_if<1>(&held_)); }

    T& value() & { return checked(), **this; }
    const T& value() const& { return checked(), **this; }
    T&& value() && { return checked(), std::move(**this); }
    template <class U>
    T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U&& other) && {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
    }

 private:
    using Held = std::variant<T, E>;
    void checked() const {
        if (!has_value()) detail::no_value();
    }
    Held held_;
};

template <class E>
class [[nodiscard]] expected<void, E> {
 public:
    using value_type = void;
    using error_type = E;

    expected() = default;
    template <class U>
        requires detail::is_unexpected<std::remove_cvref_t<U>>
    expected(U&& failure) : error_(std::forward<U>(failure).error()) {}

    bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return has_value(); }
    void operator*() const noexcept {}
    E& error() & noexcept { return *error_; }
    const E& error() const& noexcept { return *error_; }
    E&& error() && noexcept { return std::move(*error_); }
    void value() const {
        if (error_) detail::no_value();
    }

 private:
    std::optional<E> error_;
};

}  // namespace revisit
