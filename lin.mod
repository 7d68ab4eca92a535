!mod$ v1 sum:60381ad12f65ac20
module lin
contains
subroutine transpose(n,a,b)
integer(4),intent(in)::n
real(8),intent(in)::a(1_8:64_8,1_8:64_8)
real(8),intent(inout)::b(1_8:64_8,1_8:64_8)
end
end
