"""Vector scaling and the class weights of the target, fitted jointly."""
