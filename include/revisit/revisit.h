// revisit: how programs reuse memory. One include for the whole library.
#pragma once

#include "revisit/access.h"
#include "revisit/accuracy.h"
#include "revisit/analyze.h"
#include "revisit/blocks.h"
#include "revisit/cache.h"
#include "revisit/engine.h"
#include "revisit/error.h"
#include "revisit/generate.h"
#include "revisit/histogram.h"
#include "revisit/profile.h"
#include "revisit/source.h"
#include "revisit/time_model.h"
#include "revisit/trace.h"
#include "revisit/units.h"
#include "revisit/version.h"
