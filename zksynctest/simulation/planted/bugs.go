package main

import "slices"

// bugs are all bugs.
var bugs = slices.Concat(holdBugs, lineBugs, barrierBugs, queueBugs, ledgerBugs, sessionBugs, leaseBugs, errorBugs, watchBugs, serverBugs, robustServerBugs, toolBugs, robustClientBugs, deliveryBugs, primitiveBugs, requestBugs, foreignBugs)
