package breaker

// For the tests outside of the package.
var Parse = parse

const MaxListed = maxListed
