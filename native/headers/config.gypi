# How Node.js was compiled, beside its headers. An addon for Node-API does not depend on that.
{ "target_defaults": {}, "variables": {} }
