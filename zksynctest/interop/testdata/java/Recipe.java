/** One object of a recipe, as a test drives it. */
interface Recipe {
    String call(String method, String[] args) throws Exception;
}
